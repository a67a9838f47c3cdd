// The policy's interface: the actor-critic of workers/ppo/policy.py on the CPU in float32, and its update.
// workers/native/policy.py declares the same structs and checks with `esper_policy_layout` that both agree.
#pragma once

#include "api.h"

extern "C" {

// Either heads with `sizes` choices or, with n_heads 0, `dimensions` of a continuous decision. `trunks`: 1, or 2 if the
// critic has its own. `lstm`, `norms` and `relu` (else tanh) are flags.
struct EsperPolicySizes {
    std::int32_t width, hidden, lstm, trunks, norms, relu, dimensions, n_heads;
    const std::int32_t* sizes;  // [n_heads]
};

// The caller's memory for parameters, in the order of torch's parameters(), and Adam's running means of gradients and
// their squares: [count] each, zero-padded to a multiple of 16. It must live until the policy is closed.
struct EsperPolicyMemory {
    float *values, *mean, *square;
    std::int64_t count;
};

// One decision of `rows` environments.
struct EsperPolicyStep {
    std::int64_t rows;
    const float* seen;           // [rows][width]
    float* memory;               // [2][rows][trunks][hidden], h and c; without LSTM null
    const double* uniforms;      // [rows][n_heads or dimensions], or null: the most probable
    void* actions;               // written, [rows][n_heads] int64 or [rows][dimensions] double
    double *log_probs, *values;  // written, [rows]
};

// `sequences` sequences of up to `steps` steps: [steps][sequences][...]. A sequence ends with its last valid step, and
// nothing after it is read.
struct EsperPolicyArrays {
    std::int64_t steps, sequences;
    const float* observations;  // [width]
    const void* actions;        // [n_heads] int64, or [dimensions] double
    const std::uint8_t* masks;  // [n_heads][most choices of a head], or null: every choice is valid
    const double *log_probs, *values, *advantages, *returns;  // may be null in `esper_policy_evaluate`
    const std::uint8_t* valid;
    const float* memory;  // [2][sequences][trunks][hidden], or null: empty
};

struct EsperPolicyRule {
    double clip, value_clip;  // value_clip 0: the value loss is not clipped
    double value_coef, entropy_coef, target_kl, max_grad_norm, lr, adam_eps;
};

enum EsperPolicyEnd : std::int32_t { ESPER_STEPPED, ESPER_BEYOND_KL, ESPER_NOT_FINITE };
struct EsperPolicyLearnt {
    double policy_loss, value_loss, kl, clip_fraction, ratio_max, grad_norm;
    std::int32_t end;
};

struct EsperPolicy;

// All return EsperStatus: ESPER_SIZE for wrong sizes, offsets or order of calls, before any work.
ESPER_EXPORT std::int32_t esper_policy_open(
    const EsperPolicySizes* sizes, const EsperPolicyMemory* memory, EsperPolicy** policy
);
ESPER_EXPORT void esper_policy_close(EsperPolicy* policy);
ESPER_EXPORT void esper_policy_changed(EsperPolicy* policy);  // call after writing to `values`

// Features and values; the memory is written if it shall `advance`.
ESPER_EXPORT std::int32_t esper_policy_step(EsperPolicy* policy, const EsperPolicyStep* step, std::int32_t advance);

// After a step, in order: actions of `count` heads from `first` on, or of all dimensions; with the last, log_probs.
ESPER_EXPORT std::int32_t esper_policy_choose(
    EsperPolicy* policy, const EsperPolicyStep* step, std::int32_t first, std::int32_t count, const std::uint8_t* masks
);

// Computes log_probs [N], entropies [N][n_heads or dimensions] and values [N] of the N valid steps, in order.
ESPER_EXPORT std::int32_t esper_policy_evaluate(
    EsperPolicy* policy, const EsperPolicyArrays* arrays, double* log_probs, double* entropies, double* values
);

// Trains on one minibatch of `count` sequences; `updates`: Adam steps so far.
ESPER_EXPORT std::int32_t esper_policy_learn(
    EsperPolicy* policy, const EsperPolicyArrays* arrays, const std::int64_t* sequences, std::int64_t count,
    const EsperPolicyRule* rule, std::int64_t updates, EsperPolicyLearnt* learnt
);

// Sizes of the structs above in their order: [6].
ESPER_EXPORT void esper_policy_layout(std::int32_t* sizes);
}
