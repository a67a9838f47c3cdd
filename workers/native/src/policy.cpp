// What a caller may do with a policy; every size and place is checked before any work.
#include <memory>
#include <new>
#include <stdexcept>

#include "policy_learn.h"

namespace esper::policy {

namespace {

constexpr std::int32_t LARGEST = 1 << 24;  // of a width, so that no product of sizes overflows

bool sound(const EsperPolicySizes& of) {
    const auto fits = [](std::int32_t size) { return size >= 1 && size <= LARGEST; };
    if (!fits(of.width) || !fits(of.hidden) || of.n_heads < 0 || of.n_heads > LARGEST) return false;
    if (of.n_heads == 0) return fits(of.dimensions);
    if (of.sizes == nullptr || of.dimensions != 0) return false;
    for (std::int32_t i = 0; i < of.n_heads; i++)
        if (!fits(of.sizes[i])) return false;
    return true;
}

bool sound(const Network& network, const EsperPolicyArrays& of) {
    if (of.steps < 1 || of.sequences < 1 || of.steps > INT64_MAX / LARGEST / of.sequences) return false;
    return of.observations != nullptr && of.actions != nullptr && of.valid != nullptr &&
        (network.lstm || of.memory == nullptr);
}

// Whether every action of a valid step is one of its head's.
bool actions_sound(const EsperPolicy& policy, const EsperPolicyArrays& arrays) {
    const std::vector<Size>& sizes = policy.network.sizes;
    const std::int64_t* actions = (const std::int64_t*)arrays.actions;
    for (std::size_t row = 0; row < std::size_t(policy.plan.rows); row++)
        for (std::size_t head = 0; head < sizes.size() && policy.plan.counts[row]; head++) {
            const std::int64_t action = actions[std::size_t(policy.plan.source[row]) * sizes.size() + head];
            if (action < 0 || action >= sizes[head]) return false;
        }
    return true;
}

void copy_rows(const float* from, Size rows, Size width, Rows& to) {
    for (Size r = 0; r < rows; r++) std::memcpy(to.row(r), from + r * width, std::size_t(width) * sizeof(float));
}

void copy_rows(const Rows& from, Size rows, Size width, float* to) {
    for (Size r = 0; r < rows; r++) std::memcpy(to + r * width, from.row(r), std::size_t(width) * sizeof(float));
}

float highest_of(const float* logits, Size count) {
    float highest = logits[0];
    for (Size i = 1; i < count; i++) highest = logits[i] > highest ? logits[i] : highest;
    return highest;
}

void choose_head(
    EsperPolicy& policy, const Branch& of, Size head, const std::uint8_t* masks, const double* uniforms,
    std::int64_t* actions, double* log_probs
) {
    const Network& network = policy.network;
    const Size heads = network.decisions(), count = network.sizes[std::size_t(head)];
    for (Size r = 0; r < policy.rows; r++) {
        const Size at = r * heads + head;
        const float* logits = of.out.row(r) + network.starts[std::size_t(head)];
        const std::uint8_t* mask = masks == nullptr ? nullptr : masks + at * network.widest;
        const float highest = highest_of(of.out.row(r), of.outer.out);
        const double* uniform = uniforms == nullptr ? nullptr : uniforms + at;
        const std::int64_t action = draw(logits, mask, count, highest, uniform, policy.scratch.data());
        policy.actions[std::size_t(at)] = actions[at] = action;
        if (log_softmax(logits, mask, count, policy.scratch.data()).used)
            log_probs[r] += policy.scratch[std::size_t(action)];
    }
}

void choose_means(EsperPolicy& policy, const double* uniforms, double* actions, double* log_probs) {
    const Network& network = policy.network;
    const float* log_std = network.memory.values + network.log_std;
    for (Size r = 0; r < policy.rows; r++)
        for (Size i = 0; i < network.dimensions; i++) {
            const Size at = r * network.dimensions + i;
            const double mean = double(network.branches[0].out.row(r)[i]), deviation = exponential(double(log_std[i]));
            actions[at] = uniforms == nullptr ? mean : mean + deviation * normal_quantile(uniforms[at]);
            const double d = (actions[at] - mean) / deviation;
            log_probs[r] += -0.5 * (d * d) - double(log_std[i]) - LOG_ROOT_TWO_PI;
        }
}

// Calls `work` with our rounding; an exception does not cross the border.
template <class Work> std::int32_t guarded(Work&& work) {
    Rounding rounding;
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return ESPER_NO_MEMORY;
    } catch (const std::length_error&) {
        return ESPER_NO_MEMORY;
    }
}

}  // namespace

}  // namespace esper::policy

using namespace esper::policy;

extern "C" {

std::int32_t esper_policy_open(const EsperPolicySizes* sizes, const EsperPolicyMemory* memory, EsperPolicy** policy) {
    return guarded([&]() -> std::int32_t {
        if (!sound(*sizes)) return ESPER_UNSUPPORTED;
        auto made = std::make_unique<EsperPolicy>(*sizes, *memory);
        if (made->network.memory.count != memory->count) return ESPER_UNSUPPORTED;
        std::size_t choices = std::size_t(sizes->dimensions);
        for (const Size size : made->network.sizes) choices += std::size_t(size);
        made->log_probs.resize(choices);
        made->scratch.resize(choices);
        made->entropies.resize(std::size_t(made->network.decisions()));
        made->chosen = made->network.decisions();
        made->network.pack();
        *policy = made.release();
        return ESPER_OK;
    });
}

void esper_policy_close(EsperPolicy* policy) { delete policy; }

std::int32_t esper_policy_changed(EsperPolicy* policy) {
    policy->network.pack();
    return ESPER_OK;
}

std::int32_t esper_policy_step(
    EsperPolicy* policy, std::int64_t rows, const float* seen, float* h, float* c, std::int32_t keep, double* values
) {
    return guarded([&]() -> std::int32_t {
        Network& network = policy->network;
        if (rows < 1 || rows > LARGEST || (network.lstm && (h == nullptr || c == nullptr))) return ESPER_UNSUPPORTED;
        policy->chosen = network.decisions();  // no step is open
        policy->plan.one_step(rows);
        network.fit(policy->plan);
        copy_rows(seen, rows, network.width, network.seen);
        if (network.lstm) {
            copy_rows(h, rows, network.hidden, network.h_before);
            copy_rows(c, rows, network.hidden, network.c_before);
        }
        network.trunk(policy->plan);
        network.branch(network.critic(), rows, nullptr);
        for (Size r = 0; r < rows; r++) values[r] = double(network.critic().out.row(r)[0]);
        if (network.lstm && keep != 0) {
            copy_rows(network.h, rows, network.hidden, h);
            copy_rows(network.c, rows, network.hidden, c);
        }
        policy->rows = rows;
        policy->chosen = 0;
        policy->actions.assign(std::size_t(rows * Size(network.sizes.size())), 0);
        return ESPER_OK;
    });
}

std::int32_t esper_policy_choose(
    EsperPolicy* policy, std::int32_t first, std::int32_t count, const std::uint8_t* masks, const double* uniforms,
    void* actions, double* log_probs
) {
    return guarded([&]() -> std::int32_t {
        Network& network = policy->network;
        const Size decisions = network.decisions();
        if (first != policy->chosen || count < 1 || count > decisions - first) return ESPER_UNSUPPORTED;
        if (network.dimensions > 0 && count != decisions) return ESPER_UNSUPPORTED;
        for (Size r = 0; r < policy->rows && first == 0; r++) log_probs[r] = 0.0;
        if (network.dimensions > 0) {
            network.branch(network.branches[0], policy->rows, nullptr);
            choose_means(*policy, uniforms, (double*)actions, log_probs);
        }
        for (Branch& of : network.branches)
            for (Size head = of.first; head < of.first + of.heads; head++) {
                if (head < first || head >= first + count) continue;
                if (head == of.first) network.branch(of, policy->rows, policy->actions.data());
                choose_head(*policy, of, head, masks, uniforms, (std::int64_t*)actions, log_probs);
            }
        policy->chosen = first + count;
        return ESPER_OK;
    });
}

std::int32_t esper_policy_evaluate(
    EsperPolicy* policy, const EsperPolicyArrays* arrays, double* log_probs, double* entropies, double* values
) {
    return guarded([&]() -> std::int32_t {
        if (!sound(policy->network, *arrays) || !policy->plan.of(*arrays, nullptr, arrays->sequences)) return ESPER_UNSUPPORTED;
        if (!actions_sound(*policy, *arrays)) return ESPER_UNSUPPORTED;
        forward(*policy, *arrays);
        const Size steps = arrays->steps * arrays->sequences;
        policy->ranks.resize(std::size_t(steps));
        for (Size i = 0, rank = 0; i < steps; i++) {
            policy->ranks[std::size_t(i)] = rank;
            rank += arrays->valid[i] != 0;
        }
        for (Size row = 0; row < policy->plan.rows; row++) {
            if (!policy->plan.counts[std::size_t(row)]) continue;
            const Size source = policy->plan.source[std::size_t(row)], rank = policy->ranks[std::size_t(source)];
            log_probs[rank] = judge(*policy, row, *arrays, source, entropies + rank * policy->network.decisions());
            values[rank] = double(policy->network.critic().out.row(row)[0]);
        }
        return ESPER_OK;
    });
}

std::int32_t esper_policy_learn(
    EsperPolicy* policy, const EsperPolicyArrays* arrays, const std::int64_t* sequences, std::int64_t count,
    const EsperPolicyRule* rule, std::int64_t updates, EsperPolicyLearnt* learnt
) {
    return guarded([&]() -> std::int32_t {
        if (!sound(policy->network, *arrays) || count < 1 || updates < 0) return ESPER_UNSUPPORTED;
        if (arrays->log_probs == nullptr || arrays->advantages == nullptr || arrays->returns == nullptr)
            return ESPER_UNSUPPORTED;
        for (std::int64_t i = 0; i < count; i++)
            if (sequences[i] < 0 || sequences[i] >= arrays->sequences) return ESPER_UNSUPPORTED;
        if (!policy->plan.of(*arrays, sequences, count) || !actions_sound(*policy, *arrays)) return ESPER_UNSUPPORTED;
        forward(*policy, *arrays);
        lose(*policy, *arrays, *rule, *learnt);
        if (learnt->kl > rule->target_kl) {
            learnt->end = ESPER_BEYOND_KL;
            return ESPER_OK;
        }
        policy->network.backward(policy->plan, policy->actions.data());
        learnt->grad_norm = move(policy->network, *rule, updates);
        if (learnt->grad_norm - learnt->grad_norm == 0.0)
            policy->network.pack();
        else
            learnt->end = ESPER_NOT_FINITE;
        return ESPER_OK;
    });
}

void esper_policy_layout(std::int32_t* sizes) {
    const std::int32_t found[5] = {sizeof(EsperPolicySizes), sizeof(EsperPolicyMemory), sizeof(EsperPolicyArrays),
        sizeof(EsperPolicyRule), sizeof(EsperPolicyLearnt)};
    for (int i = 0; i < 5; i++) sizes[i] = found[i];
}
}
