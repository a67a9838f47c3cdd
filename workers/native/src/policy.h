// The actor-critic of workers/ppo/policy.py, forward and backward over sequences; parameters in torch's layout.
#pragma once

#include "policy_api.h"
#include "policy_layers.h"

namespace esper::policy {

constexpr Size CONDITIONING = 2;  // leading heads, each its own group; later groups are conditioned on their choices

// The order in which steps of sequences are computed. Within a step the longest sequences come first, so that
// the sequences that continue are always the first rows.
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

// A hidden layer and a linear layer, whose outputs are logits of `heads` heads, means or values.
struct Branch {
    Linear inner, outer;
    Size first = 0, heads = 0;
    std::vector<Size> tables = {};  // offsets of the embeddings of earlier choices
    Rows hidden = {}, out = {};     // of the last forward pass; backward needs the gradient in `out`
};

// From observations to features: a hidden layer and, with memory, an LSTM; a layer norm in and after them, or none.
class Trunk {
public:
    Trunk(Size& at, const EsperPolicySizes& sizes);  // parameters from `at` on, which moves behind them
    void pack(const float* values);
    void fit(const Plan& plan);
    // Inputs: rows of `seen` and, at the first step, `h_before` and `cell.before`.
    void forward(const Plan& plan, const Rows& seen);
    void backward(const Plan& plan, const Rows& seen, float* gradient);  // uses `g_features`; adds to `gradient`

    Rows features, g_features, h_before, h;
    Cell cell;

private:
    void remember(const Plan& plan);
    void back_through_time(const Plan& plan, float* gradient);

    Size hidden_;
    bool lstm_, norms_;
    Activation activation_;
    Linear encoder_, inputs_, recurrent_;
    LayerNorm first_norm_, second_norm_;
    Rows first_normed_, encoded_, second_normed_, g_later_;
};

class Network {
public:
    Network(const EsperPolicySizes& sizes, const EsperPolicyMemory& memory);
    void pack();
    void fit(const Plan& plan);
    void features(const Plan& plan);  // of all trunks, from `seen`
    void branch(Branch& of, Size rows, const std::int64_t* actions);
    void backward(const Plan& plan, const std::int64_t* actions);  // adds to `gradient`

    Size width, hidden, dimensions;
    bool lstm;
    Activation activation;
    std::vector<Size> sizes, starts;  // choices per head; offset of its logits within its group
    Size widest = 0, log_std = 0;  // most choices of a head; offset of the parameter
    EsperPolicyMemory memory;      // `count` is the required size
    std::vector<Trunk> trunks;     // the actor's first, the critic's last
    std::vector<Branch> branches;  // groups of heads, or means; last the critic
    std::vector<float> gradient;
    Rows seen;
    Branch& critic() { return branches.back(); }
    Trunk& trunk_of(const Branch& of) { return &of == &branches.back() ? trunks.back() : trunks.front(); }
    Size heads() const { return Size(sizes.size()); }
    Size decisions() const { return heads() + dimensions; }
    double log_deviation(Size i) const { return double(memory.values[log_std + i]); }

private:
    void add_branch(Size& at, Size outputs, Size first, Size heads);

    Rows g_branch_;
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
    Size chosen = 0;                    // heads already chosen in the open step

    EsperPolicy(const EsperPolicySizes& sizes, const EsperPolicyMemory& memory) : network(sizes, memory) {}
    // Gathers observations and actions of the plan's steps, then runs the forward pass.
    void forward(const EsperPolicyArrays& arrays);
    // Log-probability and entropies [decisions] of one row's actions, with masks and actions at `source`.
    double judge(Size row, const EsperPolicyArrays& arrays, Size source, double* entropies);
    // After `forward`: computes losses and log_std's gradient, and replaces the branches' outputs by their gradients.
    EsperPolicyLearnt lose(const EsperPolicyArrays& arrays, const EsperPolicyRule& rule);
    // Updates the parameters by Adam unless the gradient's norm is not finite; returns the norm.
    double move(const EsperPolicyRule& rule, std::int64_t updates);

private:
    void back(Size row, const EsperPolicyArrays& arrays, double of_joint, double of_entropy);
};
