// The actor-critic of workers/ppo/policy.py: parameters where torch has them, forward and backward over sequences.
#pragma once

#include <vector>

#include "policy_api.h"
#include "policy_choice.h"
#include "policy_layers.h"

namespace esper::policy {

// Which steps of which sequences are computed, step by step; within a step the longest sequences come first, so that
// those that go on are always the first rows.
struct Plan {
    Size steps = 0, rows = 0, valid = 0;
    std::vector<Size> first;     // [steps + 1], rows
    std::vector<Size> sequence;  // [those with a step], longest first
    std::vector<Size> source;    // [rows], step * sequences + sequence
    std::vector<std::uint8_t> counts;  // [rows], whether the step is valid

    Size count(Size step) const { return first[std::size_t(step) + 1] - first[std::size_t(step)]; }
    void one_step(Size batch);
    // `chosen` [n] or null: all. Returns whether any step is valid.
    bool of(const EsperPolicyArrays& arrays, const std::int64_t* chosen, Size n);

private:
    std::vector<Size> lengths_, places_;
};

// A hidden layer with tanh and a linear one on it, whose outputs are logits of heads, means or values.
struct Branch {
    Linear inner, outer;
    Size first = 0, heads = 0;  // of a group of heads
    std::vector<Size> tables;   // where the embeddings of earlier choices lie
    Rows hidden, out;           // of the last forward pass; `out` is replaced by its gradient before the backward pass
};

class Network {
public:
    Network(const EsperPolicySizes& sizes, const EsperPolicyMemory& memory);

    void pack();
    // From x in `seen`, and h, c in the first rows of `h_before`, `c_before`: features of all rows.
    void fit(const Plan& plan);
    void trunk(const Plan& plan);
    void branch(Branch& of, Size rows, const std::int64_t* actions);
    void backward(const Plan& plan, const std::int64_t* actions);

    Size width, hidden, dimensions;
    bool lstm;
    std::vector<Size> sizes;   // choices per head
    std::vector<Size> starts;  // of a head's logits in its group's
    Size widest = 0;
    Size log_std = 0;  // where it lies
    EsperPolicyMemory memory;  // `count` is what there has to be
    std::vector<Branch> branches;  // groups of heads, or means; last the critic
    std::vector<float> gradient;
    Rows seen, features, h_before, c_before, h, c;

    Branch& critic() { return branches.back(); }
    Size decisions() const { return sizes.empty() ? dimensions : Size(sizes.size()); }

private:
    void encode(Size rows);
    void remember(const Plan& plan);
    void forget(const Plan& plan);
    void add_branch(Size& at, Size outputs, Size first, Size heads);

    Linear encoder_, inputs_, recurrent_;
    LayerNorm first_norm_, second_norm_;
    Cell cell_;
    Rows first_normed_, encoded_, gates_, tanh_c_, second_normed_, g_features_, g_branch_, g_later_;
    std::vector<float> first_inverse_, second_inverse_;
};

}  // namespace esper::policy

struct EsperPolicy {
    esper::policy::Network network;
    esper::policy::Plan plan;
    std::vector<double> log_probs;      // of one row, of every head; continuous: the gradient of log_std
    std::vector<double> entropies;      // of one row
    std::vector<double> scratch;        // [widest] or [dimensions]
    std::vector<std::int64_t> actions;  // [rows][heads]
    std::vector<std::int64_t> ranks;    // of valid steps
    esper::policy::Size rows = 0;       // of the last step that was made
    esper::policy::Size chosen = 0;     // heads chosen in it

    EsperPolicy(const EsperPolicySizes& sizes, const EsperPolicyMemory& memory) : network(sizes, memory) {}
};
