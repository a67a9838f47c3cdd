// The loss of workers/ppo/update.py and Adam (Kingma and Ba 2015, arXiv:1412.6980).
#include <algorithm>

#include "policy.h"

using namespace esper;
using namespace esper::policy;

namespace {

// The masks of a head at a step, or null.
const std::uint8_t* mask_of(const Network& network, const EsperPolicyArrays& arrays, Size source, Size head) {
    return arrays.masks == nullptr ? nullptr : arrays.masks + (source * network.heads() + head) * network.widest;
}

// In an order that is part of the arithmetic, the same whatever the width of vectors.
double sum_of_squares(const std::vector<float>& x) {
    double sums[UNIT] = {}, sum = 0.0;
    for (std::size_t i = 0; i < x.size(); i += UNIT)
        for (std::size_t k = 0; k < UNIT; k++) sums[k] += double(x[i + k]) * double(x[i + k]);
    for (const double part : sums) sum += part;
    return sum;
}

// The error of a value whose square counts, and whether the value has a part in it. With a clip it is the larger of two
// errors: that of the value, and that of a value which moves by `value_clip` at most from what it was when acting.
struct ValueError {
    double error;
    bool flows;
};

ValueError value_error(double value, double before, double target, const EsperPolicyRule& rule) {
    const double error = value - target, move = value - before;
    if (!(rule.value_clip > 0.0)) return {error, true};
    const double bounded = move < -rule.value_clip ? -rule.value_clip : move > rule.value_clip ? rule.value_clip : move;
    const double clipped = before + bounded - target;
    if (error * error >= clipped * clipped) return {error, true};
    return {clipped, bounded == move || move != move};
}

}  // namespace

void EsperPolicy::forward(const EsperPolicyArrays& arrays) {
    const Size heads = network.heads(), hidden = network.hidden;
    chosen = network.decisions();  // no step is open
    network.fit(plan);
    actions.assign(plan.rows * heads, 0);
    for (Size row = 0; row < plan.rows; row++) {
        const Size source = plan.source[row];
        const float* from = arrays.observations + source * network.width;
        std::copy(from, from + network.width, network.seen.row(row));
        const std::int64_t* taken = (const std::int64_t*)arrays.actions + source * heads;
        if (plan.counts[row]) std::copy(taken, taken + heads, actions.begin() + row * heads);
    }
    const Size trunks = Size(network.trunks.size());
    for (Size i = 0; network.lstm && i < plan.count(0); i++)
        for (Size k = 0; k < 2 * trunks; k++) {  // h of every trunk, then c
            Trunk& of = network.trunks[k % trunks];
            const Size from = ((k / trunks * arrays.sequences + plan.source[i]) * trunks + k % trunks) * hidden;
            float* to = (k < trunks ? of.h_before : of.cell.before).row(i);
            for (Size j = 0; j < hidden; j++) to[j] = arrays.memory == nullptr ? 0.0f : arrays.memory[from + j];
        }
    network.features(plan);
    for (Branch& of : network.branches) network.branch(of, plan.rows, actions.data());
}

double EsperPolicy::judge(Size row, const EsperPolicyArrays& arrays, Size source, double* to) {
    double joint = 0.0;
    double* at = log_probs.data();
    const auto take = [&](Judged of) {
        joint += of.log_prob;
        *to++ = of.entropy;
    };
    for (Size i = 0; i < network.dimensions; i++) {
        const double action = ((const double*)arrays.actions)[source * network.dimensions + i];
        take(judge_normal(double(network.branches[0].out.row(row)[i]), network.log_deviation(i), action, *at++));
    }
    for (const Branch& of : network.branches)
        for (Size head = of.first; head < of.first + of.heads; at += network.sizes[head++]) {
            const float* logits = of.out.row(row) + network.starts[head];
            const std::uint8_t* mask = mask_of(network, arrays, source, head);
            take(judge_head(logits, mask, network.sizes[head], actions[row * network.heads() + head], at));
        }
    return joint;
}

// Gradients of one row's outputs from that of its log-probability and that of every entropy; after `judge`.
void EsperPolicy::back(Size row, const EsperPolicyArrays& arrays, double of_joint, double of_entropy) {
    const double* at = log_probs.data();
    for (Size i = 0; i < network.dimensions; i++, at++) {
        of_log_std[i] += of_joint * (*at * *at - 1.0) + of_entropy;
        network.branches[0].out.row(row)[i] = float(of_joint * *at / exponential(network.log_deviation(i)));
    }
    for (Branch& of : network.branches)
        for (Size head = of.first; head < of.first + of.heads; at += network.sizes[head++]) {
            const std::uint8_t* mask = mask_of(network, arrays, plan.source[row], head);
            const std::int64_t action = actions[row * network.heads() + head];
            float* to = of.out.row(row) + network.starts[head];
            for (Size i = 0; i < network.sizes[head]; i++) {
                const bool valid = mask == nullptr || mask[i];
                const double p = valid ? exponential(at[i]) : 0.0, taken = valid && i == action ? 1.0 : 0.0;
                to[i] = float(of_joint * (taken - p) - of_entropy * (p * (at[i] + entropies[head])));
            }
        }
}

EsperPolicyLearnt EsperPolicy::lose(const EsperPolicyArrays& arrays, const EsperPolicyRule& rule) {
    const double part = 1.0 / double(plan.valid), low = 1.0 - rule.clip, high = 1.0 + rule.clip;
    EsperPolicyLearnt learnt{0.0, 0.0, 0.0, 0.0, -__builtin_inf(), 0.0, ESPER_STEPPED};
    std::fill(of_log_std.begin(), of_log_std.end(), 0.0);
    for (Size row = 0; row < plan.rows; row++) {
        const Size source = plan.source[row];
        if (!plan.counts[row]) {
            for (Branch& of : network.branches) std::fill_n(of.out.row(row), of.outer.out, 0.0f);
            continue;
        }
        const double log_ratio = judge(row, arrays, source, entropies.data()) - arrays.log_probs[source];
        const double ratio = exponential(log_ratio), clipped = ratio < low ? low : ratio > high ? high : ratio;
        const double free = ratio * arrays.advantages[source], bound = clipped * arrays.advantages[source];
        float* value = network.critic().out.row(row);
        const ValueError of_value = value_error(double(*value), arrays.values[source], arrays.returns[source], rule);
        learnt.policy_loss -= (bound < free ? bound : free) * part;
        learnt.value_loss += 0.5 * (of_value.error * of_value.error) * part;
        learnt.kl += (ratio - 1.0 - log_ratio) * part;
        if (ratio - 1.0 > rule.clip || 1.0 - ratio > rule.clip) learnt.clip_fraction += part;
        if (!(ratio <= learnt.ratio_max)) learnt.ratio_max = ratio;
        const bool flows = free < bound || clipped == ratio || ratio != ratio;
        back(row, arrays, flows ? -free * part : 0.0, -rule.entropy_coef * part);
        *value = of_value.flows ? float(rule.value_coef * of_value.error * part) : 0.0f;
    }
    network.gradient.assign(padded(network.memory.count), 0.0f);
    for (Size i = 0; i < network.dimensions; i++) network.gradient[network.log_std + i] = float(of_log_std[i]);
    return learnt;
}

double EsperPolicy::move(const EsperPolicyRule& rule, std::int64_t updates) {
    constexpr double BETA_1 = 0.9, BETA_2 = 0.999;
    const auto bias = [&](double beta) { return 1.0 - exponential(double(updates + 1) * logarithm(beta)); };
    const double norm = __builtin_sqrt(sum_of_squares(network.gradient)), shrunk = rule.max_grad_norm / (norm + 1e-6);
    if (!(norm - norm == 0.0)) return norm;
    const Vec factor = splat(shrunk < 1.0 ? float(shrunk) : 1.0f), decay = splat(float(BETA_2));
    const Vec part_1 = splat(float(1.0 - BETA_1)), part_2 = splat(float(1.0 - BETA_2)), eps = splat(float(rule.adam_eps));
    const Vec scale = splat(float(1.0 / __builtin_sqrt(bias(BETA_2)))), rate = splat(float(-rule.lr / bias(BETA_1)));
    for (Size i = 0; i < network.memory.count; i += LANES) {
        const EsperPolicyMemory& to = network.memory;
        float *values = to.values + i, *means = to.mean + i, *squares = to.square + i;
        const Vec g = load(network.gradient.data() + i) * factor, mean = load(means);
        const Vec square = fma(g * g, part_2, load(squares) * decay), moved = fma(g - mean, part_1, mean);
        store(means, moved);
        store(squares, square);
        store(values, fma(moved / fma(root(square), scale, eps), rate, load(values)));
    }
    return norm;
}
