#include "policy_learn.h"

#include <algorithm>

namespace esper::policy {

namespace {

typedef double Doubles __attribute__((vector_size(4 * UNIT)));
typedef float Floats __attribute__((vector_size(2 * UNIT)));

// The masks of a head at a step, or null.
const std::uint8_t* mask_of(const Network& network, const EsperPolicyArrays& arrays, Size source, Size head) {
    if (arrays.masks == nullptr) return nullptr;
    return arrays.masks + (source * Size(network.sizes.size()) + head) * network.widest;
}

// (action - mean) / deviation
double distance(const Network& network, const EsperPolicyArrays& arrays, Size row, Size source, Size i) {
    const double action = ((const double*)arrays.actions)[source * network.dimensions + i];
    const double log_std = double(network.memory.values[network.log_std + i]);
    return (action - double(network.branches[0].out.row(row)[i])) / exponential(log_std);
}

double judge_normal(EsperPolicy& policy, Size row, const EsperPolicyArrays& arrays, Size source, double* entropies) {
    const Network& network = policy.network;
    double joint = 0.0;
    for (Size i = 0; i < network.dimensions; i++) {
        const double log_std = double(network.memory.values[network.log_std + i]);
        const double d = policy.scratch[std::size_t(i)] = distance(network, arrays, row, source, i);
        joint += -0.5 * (d * d) - log_std - LOG_ROOT_TWO_PI;
        entropies[i] = log_std + (0.5 + LOG_ROOT_TWO_PI);
    }
    return joint;
}

// Gradients of one row's outputs from that of its log-probability and that of every entropy; `judge` was called before.
void back(
    EsperPolicy& policy, Size row, const EsperPolicyArrays& arrays, double of_joint, double of_entropy,
    const double* entropies
) {
    Network& network = policy.network;
    const Size source = policy.plan.source[std::size_t(row)];
    if (network.dimensions > 0) {
        float* to = network.branches[0].out.row(row);
        for (Size i = 0; i < network.dimensions; i++) {
            const double log_std = double(network.memory.values[network.log_std + i]);
            const double d = policy.scratch[std::size_t(i)];
            policy.log_probs[std::size_t(i)] += of_joint * (d * d - 1.0) + of_entropy;
            to[i] = float(of_joint * d / exponential(log_std));
        }
        return;
    }
    const double* log_probs = policy.log_probs.data();
    for (Branch& of : network.branches)
        for (Size head = of.first; head < of.first + of.heads; head++) {
            const Size count = network.sizes[std::size_t(head)], start = network.starts[std::size_t(head)];
            const std::uint8_t* mask = mask_of(network, arrays, source, head);
            const std::int64_t action = policy.actions[std::size_t(row * network.decisions() + head)];
            float* to = of.out.row(row) + start;
            bool used = mask == nullptr;
            for (Size i = 0; i < count && !used; i++) used = mask[i] != 0;
            for (Size i = 0; i < count; i++) {
                const bool valid = used && (mask == nullptr || mask[i]);
                const double p = valid ? exponential(log_probs[i]) : 0.0, taken = valid && i == action ? 1.0 : 0.0;
                const double surprise = valid ? log_probs[i] + entropies[head] : 0.0;
                to[i] = float(of_joint * (taken - (used ? p : 0.0)) - of_entropy * (p * surprise));
            }
            log_probs += count;
        }
}

// In an order that is part of the arithmetic, the same whatever the width of vectors.
double sum_of_squares(const std::vector<float>& x) {
    Doubles sums[2] = {};
    for (std::size_t i = 0; i < x.size(); i += UNIT)
        for (std::size_t half = 0; half < 2; half++) {
            Floats part;
            std::memcpy((void*)&part, x.data() + i + half * UNIT / 2, sizeof part);
            const Doubles v = __builtin_convertvector(part, Doubles);
            sums[half] += v * v;
        }
    const Doubles both = sums[0] + sums[1];
    double sum = 0.0;
    for (int k = 0; k < UNIT / 2; k++) sum += both[k];
    return sum;
}

// Up to LANES numbers, if fewer are left.
INLINE Vec load(const float* from, Size left) {
    if (left >= LANES) return policy::load(from);
    Vec x = {};
    std::memcpy((void*)&x, from, std::size_t(left) * sizeof(float));
    return x;
}

INLINE void store(float* to, Vec x, Size left) {
    if (left >= LANES) return policy::store(to, x);
    std::memcpy(to, (const void*)&x, std::size_t(left) * sizeof(float));
}

double power(double base, std::int64_t exponent) {
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

}  // namespace

double judge(EsperPolicy& policy, Size row, const EsperPolicyArrays& arrays, Size source, double* entropies) {
    const Network& network = policy.network;
    if (network.dimensions > 0) return judge_normal(policy, row, arrays, source, entropies);
    double joint = 0.0;
    double* log_probs = policy.log_probs.data();
    for (const Branch& of : network.branches)
        for (Size head = of.first; head < of.first + of.heads; head++) {
            const Size count = network.sizes[std::size_t(head)];
            const float* logits = of.out.row(row) + network.starts[std::size_t(head)];
            const Head found = log_softmax(logits, mask_of(network, arrays, source, head), count, log_probs);
            if (found.used) joint += log_probs[policy.actions[std::size_t(row * network.decisions() + head)]];
            entropies[head] = found.entropy;
            log_probs += count;
        }
    return joint;
}

void forward(EsperPolicy& policy, const EsperPolicyArrays& arrays) {
    Network& network = policy.network;
    const Plan& plan = policy.plan;
    const Size heads = Size(network.sizes.size()), hidden = network.hidden;
    policy.chosen = network.decisions();  // no step is open
    network.fit(plan);
    policy.actions.assign(std::size_t(plan.rows * heads), 0);
    const std::size_t width = std::size_t(network.width) * sizeof(float);
    for (Size row = 0; row < plan.rows; row++) {
        const Size source = plan.source[std::size_t(row)];
        std::memcpy(network.seen.row(row), arrays.observations + source * network.width, width);
        if (!plan.counts[std::size_t(row)]) continue;
        for (Size head = 0; head < heads; head++)
            policy.actions[std::size_t(row * heads + head)] = ((const std::int64_t*)arrays.actions)[source * heads + head];
    }
    for (Size i = 0; network.lstm && i < plan.count(0); i++)
        for (Size part = 0; part < 2; part++) {
            float* to = (part == 0 ? network.h_before : network.c_before).row(i);
            const Size from = (part * arrays.sequences + plan.sequence[std::size_t(i)]) * hidden;
            for (Size j = 0; j < hidden; j++) to[j] = arrays.memory == nullptr ? 0.0f : arrays.memory[from + j];
        }
    network.trunk(plan);
    for (Branch& of : network.branches) network.branch(of, plan.rows, policy.actions.data());
}

void lose(
    EsperPolicy& policy, const EsperPolicyArrays& arrays, const EsperPolicyRule& rule, EsperPolicyLearnt& learnt
) {
    Network& network = policy.network;
    const Plan& plan = policy.plan;
    const double part = 1.0 / double(plan.valid), low = 1.0 - rule.clip, high = 1.0 + rule.clip;
    std::vector<double>& entropies = policy.entropies;
    if (network.dimensions > 0) std::fill(policy.log_probs.begin(), policy.log_probs.end(), 0.0);
    learnt = {0.0, 0.0, 0.0, 0.0, -__builtin_inf(), 0.0, ESPER_STEPPED};
    for (Size row = 0; row < plan.rows; row++) {
        const Size source = plan.source[std::size_t(row)];
        float* value = network.critic().out.row(row);
        if (!plan.counts[std::size_t(row)]) {
            for (Branch& of : network.branches)
                for (Size i = 0; i < of.outer.out; i++) of.out.row(row)[i] = 0.0f;
            continue;
        }
        const double log_ratio = judge(policy, row, arrays, source, entropies.data()) - arrays.log_probs[source];
        const double ratio = exponential(log_ratio), advantage = arrays.advantages[source];
        const double clipped = ratio < low ? low : ratio > high ? high : ratio;
        const double free = ratio * advantage, bound = clipped * advantage, error = double(*value) - arrays.returns[source];
        learnt.policy_loss -= (bound < free ? bound : free) * part;
        learnt.value_loss += 0.5 * (error * error) * part;
        learnt.kl += (ratio - 1.0 - log_ratio) * part;
        const double change = ratio > 1.0 ? ratio - 1.0 : 1.0 - ratio;
        if (change > rule.clip) learnt.clip_fraction += part;
        if (!(ratio <= learnt.ratio_max)) learnt.ratio_max = ratio;
        const bool flows = free < bound || clipped == ratio || ratio != ratio;
        back(policy, row, arrays, flows ? -free * part : 0.0, -rule.entropy_coef * part, entropies.data());
        *value = float(rule.value_coef * error * part);
    }
    std::fill(network.gradient.begin(), network.gradient.end(), 0.0f);
    for (Size i = 0; i < network.dimensions; i++)
        network.gradient[std::size_t(network.log_std + i)] = float(policy.log_probs[std::size_t(i)]);
}

double move(Network& network, const EsperPolicyRule& rule, std::int64_t updates) {
    constexpr double BETA_1 = 0.9, BETA_2 = 0.999, EPS = 1e-5;
    const std::vector<float>& gradient = network.gradient;
    const double norm = __builtin_sqrt(sum_of_squares(gradient));
    if (!(norm <= 1e300)) return norm;
    const double shrunk = rule.max_grad_norm / (norm + 1e-6);
    const Vec factor = splat(shrunk < 1.0 ? float(shrunk) : 1.0f), decay = splat(float(BETA_2));
    const Vec part_1 = splat(float(1.0 - BETA_1)), part_2 = splat(float(1.0 - BETA_2)), eps = splat(float(EPS));
    const Vec scale = splat(float(1.0 / __builtin_sqrt(1.0 - power(BETA_2, updates + 1))));
    const Vec rate = splat(float(-rule.lr / (1.0 - power(BETA_1, updates + 1))));
    const EsperPolicyMemory& memory = network.memory;
    for (Size i = 0; i < memory.count; i += LANES) {
        const Size left = memory.count - i;
        Vec mean = load(memory.mean + i, left), square = load(memory.square + i, left);
        const Vec g = policy::load(gradient.data() + i) * factor;
        mean = fma(g - mean, part_1, mean);
        square = fma(g * g, part_2, square * decay);
        store(memory.mean + i, mean, left);
        store(memory.square + i, square, left);
        store(memory.values + i, fma(mean / fma(root(square), scale, eps), rate, load(memory.values + i, left)), left);
    }
    return norm;
}

}  // namespace esper::policy
