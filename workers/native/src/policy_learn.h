// The loss of workers/ppo/update.py and Adam.
#pragma once

#include "policy.h"

namespace esper::policy {

// Log-probability and entropies [decisions] of one row's actions; log-probabilities of all choices into `log_probs`.
double judge(EsperPolicy& policy, Size row, const EsperPolicyArrays& arrays, Size source, double* entropies);

// Gathers what the network sees of the plan's steps, and the actions; passes forward.
void forward(EsperPolicy& policy, const EsperPolicyArrays& arrays);

// After `forward`: losses, and the gradients of the branches' outputs in their place; the others are zero but log_std's.
void lose(
    EsperPolicy& policy, const EsperPolicyArrays& arrays, const EsperPolicyRule& rule, EsperPolicyLearnt& learnt
);

// Clips the gradient and moves the parameters by Adam unless the gradient's norm, which it returns, is not finite.
double move(Network& network, const EsperPolicyRule& rule, std::int64_t updates);

}  // namespace esper::policy
