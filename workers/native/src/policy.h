// The actor-critic of workers/ppo/policy.py: parameters where torch has them, forward and backward over sequences.
#pragma once

#include "policy_api.h"
#include "policy_layers.h"

namespace esper::policy {

constexpr Size CONDITIONING = 2;  // leading heads, each its own group, whose choices later groups know

// Which steps of which sequences are computed, step by step; within a step the longest sequences come first, so that
// those that go on are always the first rows.
struct Plan {
    Size steps = 0, rows = 0, valid = 0;
    std::vector<Size> first;           // [steps + 1], rows
    std::vector<Size> source;          // [rows], step * sequences + sequence
    std::vector<std::uint8_t> counts;  // [rows], whether the step is valid

    Size count(Size step) const { return first[step + 1] - first[step]; }
    void one_step(Size batch);
    void of(const EsperPolicyArrays& arrays, const std::int64_t* chosen, Size n);  // null: the first n

private:
    std::vector<Size> lengths_, order_;
};

// A hidden layer with tanh and a linear one on it, whose outputs are logits of `heads` heads, means or values.
struct Branch {
    Linear inner, outer;
    Size first = 0, heads = 0;
    std::vector<Size> tables = {};  // where the embeddings of earlier choices lie
    Rows hidden = {}, out = {};     // of the last forward pass; before the backward pass `out` becomes its gradient
};

class Network {
public:
    Network(const EsperPolicySizes& sizes, const EsperPolicyMemory& memory);
    void pack();
    void fit(const Plan& plan);
    void trunk(const Plan& plan);  // from rows in `seen` and, at the first step, `h_before` and `cell.before`
    void branch(Branch& of, Size rows, const std::int64_t* actions);
    void backward(const Plan& plan, const std::int64_t* actions);  // adds to `gradient`

    Size width, hidden, dimensions;
    bool lstm;
    std::vector<Size> sizes, starts;  // choices per head; where its logits begin in its group's
    Size widest = 0, log_std = 0;  // most choices of a head; where the parameter lies
    EsperPolicyMemory memory;      // `count` is what there has to be
    std::vector<Branch> branches;  // groups of heads, or means; last the critic
    std::vector<float> gradient;
    Rows seen, features, h_before, h;
    Cell cell;
    Branch& critic() { return branches.back(); }
    Size heads() const { return Size(sizes.size()); }
    Size decisions() const { return heads() + dimensions; }
    double log_deviation(Size i) const { return double(memory.values[log_std + i]); }

private:
    void remember(const Plan& plan);
    void back_through_time(const Plan& plan);
    void add_branch(Size& at, Size outputs, Size first, Size heads);

    Linear encoder_, inputs_, recurrent_;
    LayerNorm first_norm_, second_norm_;
    Rows first_normed_, encoded_, second_normed_, g_features_, g_branch_, g_later_;
};

}  // namespace esper::policy

struct EsperPolicy {
    typedef esper::policy::Size Size;
    esper::policy::Network network;
    esper::policy::Plan plan;
    std::vector<double> log_probs;      // of one row, of every head; continuous: deviations from the means
    std::vector<double> of_log_std;     // gradient
    std::vector<double> entropies;      // of one row
    std::vector<std::int64_t> actions;  // [rows][heads]
    std::vector<Size> ranks;            // of valid steps
    Size chosen = 0;                    // heads chosen of the step that is open

    EsperPolicy(const EsperPolicySizes& sizes, const EsperPolicyMemory& memory) : network(sizes, memory) {}
    // Gathers what the network sees of the plan's steps, and the actions; passes forward.
    void forward(const EsperPolicyArrays& arrays);
    // Log-probability and entropies [decisions] of one row's actions, with masks and actions at `source`.
    double judge(Size row, const EsperPolicyArrays& arrays, Size source, double* entropies);
    // After `forward`: losses, and the gradients of the branches' outputs in their place and of log_std.
    EsperPolicyLearnt lose(const EsperPolicyArrays& arrays, const EsperPolicyRule& rule);
    // Moves the parameters by Adam unless the gradient's norm, which it returns, is not finite.
    double move(const EsperPolicyRule& rule, std::int64_t updates);

private:
    void back(Size row, const EsperPolicyArrays& arrays, double of_joint, double of_entropy);
};
