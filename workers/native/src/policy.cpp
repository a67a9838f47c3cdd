// What a caller may do with a policy; every size and place is checked before any work.
#include <algorithm>
#include <exception>
#include <memory>

#include "policy.h"

using namespace esper;
using namespace esper::policy;

namespace {

constexpr std::int64_t LARGEST = 1 << 24;  // of a width, so that no product of sizes overflows

bool sound(const EsperPolicySizes& of) {
    const auto fits = [](std::int32_t size) { return size >= 1 && size <= LARGEST; };
    if (!fits(of.width) || !fits(of.hidden) || of.trunks < 1 || of.trunks > 2) return false;
    if (of.n_heads == 0) return fits(of.dimensions);
    return fits(of.n_heads) && of.dimensions == 0 && std::all_of(of.sizes, of.sizes + of.n_heads, fits);
}

// Plans some sequences (null: all). Whether they, a valid step and actions that can be are there.
bool plan(EsperPolicy& policy, const EsperPolicyArrays& of, const std::int64_t* sequences, std::int64_t count) {
    const Network& network = policy.network;
    if (of.steps < 1 || of.sequences < 1 || of.steps > INT64_MAX / LARGEST / of.sequences || count < 1) return false;
    if (of.observations == nullptr || of.actions == nullptr || of.valid == nullptr) return false;
    for (std::int64_t i = 0; i < count && sequences != nullptr; i++)
        if (sequences[i] < 0 || sequences[i] >= of.sequences) return false;
    policy.plan.of(of, sequences, count);
    for (Size row = 0; row < policy.plan.rows; row++)
        for (Size head = 0; head < network.heads() && policy.plan.counts[row]; head++) {
            const Size at = policy.plan.source[row] * network.heads() + head;
            const std::int64_t action = ((const std::int64_t*)of.actions)[at];
            if (action < 0 || action >= network.sizes[head]) return false;
        }
    return policy.plan.valid > 0;
}

// Memory [2][rows][trunks][hidden]: calls `copy` with the address of a row's h or c, and its place in a trunk.
template <class Copy> void each_memory(Network& network, Size rows, float* memory, bool before, Copy&& copy) {
    for (Size part = 0; part < 2; part++)
        for (Size r = 0; r < rows; r++)
            for (Trunk& of : network.trunks) {
                Rows& h = before ? of.h_before : of.h;
                Rows& c = before ? of.cell.before : of.cell.c;
                copy(memory, (part == 0 ? h : c).row(r));
                memory += network.hidden;
            }
}

void choose_head(
    EsperPolicy& policy, const Branch& of, Size head, const EsperPolicyStep& step, const std::uint8_t* masks
) {
    const Network& network = policy.network;
    for (Size r = 0; r < step.rows; r++) {
        const Size at = r * network.heads() + head;
        const float* logits = of.out.row(r);
        const std::uint8_t* mask = masks == nullptr ? nullptr : masks + at * network.widest;
        const float highest = *std::max_element(logits, logits + of.outer.out);
        const double* uniform = step.uniforms == nullptr ? nullptr : step.uniforms + at;
        policy.actions[at] = ((std::int64_t*)step.actions)[at] =
            draw(logits + network.starts[head], mask, network.sizes[head], highest, uniform, policy.log_probs.data());
    }
}

void choose_around_means(const EsperPolicy& policy, const EsperPolicyStep& step) {
    const Network& network = policy.network;
    for (Size r = 0; r < step.rows; r++)
        for (Size i = 0; i < network.dimensions; i++) {
            const Size at = r * network.dimensions + i;
            const double far = step.uniforms == nullptr ? 0.0 : normal_quantile(step.uniforms[at]);
            const double mean = double(network.branches[0].out.row(r)[i]);
            ((double*)step.actions)[at] = mean + exponential(network.log_deviation(i)) * far;
        }
}

// Calls `work` with our rounding; no exception crosses the border.
template <class Work> std::int32_t guarded(Work&& work) {
    Rounding rounding;
    try {
        return work() ? ESPER_OK : ESPER_SIZE;
    } catch (const std::exception&) {  // of allocations, which are all that may throw
        return ESPER_NO_MEMORY;
    }
}

}  // namespace

extern "C" {

std::int32_t esper_policy_open(const EsperPolicySizes* sizes, const EsperPolicyMemory* memory, EsperPolicy** policy) {
    return guarded([&] {
        if (!sound(*sizes)) return false;
        auto made = std::make_unique<EsperPolicy>(*sizes, *memory);
        Network& network = made->network;
        if (network.memory.count != memory->count) return false;
        Size choices = network.dimensions;
        for (const Size size : network.sizes) choices += size;
        made->log_probs.resize(choices);
        made->of_log_std.resize(network.dimensions);
        made->entropies.resize(network.decisions());
        made->chosen = network.decisions();
        network.pack();
        *policy = made.release();
        return true;
    });
}

void esper_policy_close(EsperPolicy* policy) { delete policy; }

void esper_policy_changed(EsperPolicy* policy) { policy->network.pack(); }

std::int32_t esper_policy_step(EsperPolicy* policy, const EsperPolicyStep* step, std::int32_t advance) {
    return guarded([&] {
        Network& network = policy->network;
        const Size rows = step->rows, width = network.width, hidden = network.hidden;
        if (rows < 1 || rows > LARGEST || (network.lstm && step->memory == nullptr)) return false;
        policy->chosen = network.decisions();  // no step is open
        policy->plan.one_step(rows);
        network.fit(policy->plan);
        policy->actions.assign(rows * network.heads(), 0);
        for (Size r = 0; r < rows; r++) std::copy_n(step->seen + r * width, width, network.seen.row(r));
        if (network.lstm)
            each_memory(network, rows, step->memory, true, [=](const float* from, float* to) {
                std::copy_n(from, hidden, to);
            });
        network.features(policy->plan);
        network.branch(network.critic(), rows, nullptr);
        for (Size r = 0; r < rows; r++) step->values[r] = double(network.critic().out.row(r)[0]);
        if (network.lstm && advance != 0)
            each_memory(network, rows, step->memory, false, [=](float* to, const float* from) {
                std::copy_n(from, hidden, to);
            });
        policy->chosen = 0;
        return true;
    });
}

std::int32_t esper_policy_choose(
    EsperPolicy* policy, const EsperPolicyStep* step, std::int32_t first, std::int32_t count, const std::uint8_t* masks
) {
    return guarded([&] {
        Network& network = policy->network;
        const Size rows = policy->plan.rows, decisions = network.decisions();
        if (first != policy->chosen || count < 1 || count > decisions - first || step->rows != rows) return false;
        if (network.dimensions > 0) {
            if (count != decisions) return false;
            network.branch(network.branches[0], rows, nullptr);
            choose_around_means(*policy, *step);
        }
        for (Size head = first; head < first + count && network.dimensions == 0; head++) {
            Branch& of = network.branches[std::min(head, CONDITIONING)];
            if (head == of.first) network.branch(of, rows, policy->actions.data());
            choose_head(*policy, of, head, *step, masks);
        }
        policy->chosen = first + count;
        const EsperPolicyArrays taken{1, rows, nullptr, step->actions, masks};  // the rest is null
        for (Size r = 0; r < rows && policy->chosen == decisions; r++)
            step->log_probs[r] = policy->judge(r, taken, r, policy->entropies.data());
        return true;
    });
}

std::int32_t esper_policy_evaluate(
    EsperPolicy* policy, const EsperPolicyArrays* arrays, double* log_probs, double* entropies, double* values
) {
    return guarded([&] {
        if (!plan(*policy, *arrays, nullptr, arrays->sequences)) return false;
        policy->forward(*arrays);
        const Size steps = arrays->steps * arrays->sequences;
        policy->ranks.assign(steps, 0);
        for (Size i = 1; i < steps; i++) policy->ranks[i] = policy->ranks[i - 1] + (arrays->valid[i - 1] != 0);
        for (Size row = 0; row < policy->plan.rows; row++) {
            if (!policy->plan.counts[row]) continue;
            const Size source = policy->plan.source[row], rank = policy->ranks[source];
            log_probs[rank] = policy->judge(row, *arrays, source, entropies + rank * policy->network.decisions());
            values[rank] = double(policy->network.critic().out.row(row)[0]);
        }
        return true;
    });
}

std::int32_t esper_policy_learn(
    EsperPolicy* policy, const EsperPolicyArrays* arrays, const std::int64_t* sequences, std::int64_t count,
    const EsperPolicyRule* rule, std::int64_t updates, EsperPolicyLearnt* learnt
) {
    return guarded([&] {
        for (const double* numbers : {arrays->log_probs, arrays->values, arrays->advantages, arrays->returns})
            if (numbers == nullptr) return false;
        if (updates < 0 || !plan(*policy, *arrays, sequences, count)) return false;
        policy->forward(*arrays);
        *learnt = policy->lose(*arrays, *rule);
        if (learnt->kl > rule->target_kl) {
            learnt->end = ESPER_BEYOND_KL;
            return true;
        }
        policy->network.backward(policy->plan, policy->actions.data());
        learnt->grad_norm = policy->move(*rule, updates);
        if (learnt->grad_norm - learnt->grad_norm != 0.0) learnt->end = ESPER_NOT_FINITE;
        if (learnt->end == ESPER_STEPPED) policy->network.pack();
        return true;
    });
}

void esper_policy_layout(std::int32_t* sizes) {
    const std::int32_t found[6] = {sizeof(EsperPolicySizes), sizeof(EsperPolicyMemory), sizeof(EsperPolicyStep),
        sizeof(EsperPolicyArrays), sizeof(EsperPolicyRule), sizeof(EsperPolicyLearnt)};
    std::copy_n(found, 6, sizes);
}
}
