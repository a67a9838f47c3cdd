// The order of computation, and a network's parameters, forward and backward passes.
#include "policy.h"

namespace esper::policy {

void Plan::one_step(Size batch) {
    steps = 1;
    rows = valid = batch;
    first.assign({0, batch});
}

void Plan::of(const EsperPolicyArrays& arrays, const std::int64_t* chosen, Size n) {
    lengths_.assign(n, arrays.steps);
    for (Size i = 0; i < n; i++) {
        const std::uint8_t* mine = arrays.valid + (chosen == nullptr ? i : chosen[i]);
        while (lengths_[i] > 0 && !mine[(lengths_[i] - 1) * arrays.sequences]) lengths_[i]--;
    }
    order_.clear();
    for (Size length = arrays.steps; length > 0; length--)
        for (Size i = 0; i < n; i++)
            if (lengths_[i] == length) order_.push_back(i);
    first.assign(1, 0);
    source.clear();
    counts.clear();
    steps = order_.empty() ? 0 : lengths_[order_[0]];
    valid = 0;
    for (Size t = 0; t < steps; t++) {
        for (const Size i : order_) {
            if (lengths_[i] <= t) break;
            source.push_back(t * arrays.sequences + (chosen == nullptr ? i : chosen[i]));
            counts.push_back(arrays.valid[source.back()] != 0);
            valid += counts.back();
        }
        first.push_back(Size(source.size()));
    }
    rows = first.back();
}

Network::Network(const EsperPolicySizes& of, const EsperPolicyMemory& kept)
    : width(of.width), hidden(of.hidden), dimensions(of.dimensions), lstm(of.lstm != 0), activation{of.relu != 0},
      sizes(of.sizes, of.sizes + of.n_heads), memory(kept) {
    Size at = 0;
    trunks.emplace_back(at, of);
    for (Size head = 0, group = 1; head < heads(); head += group) {
        Size outputs = 0;
        group = head < CONDITIONING ? 1 : heads() - head;
        for (Size i = head; i < head + group; i++) {
            starts.push_back(outputs);
            outputs += sizes[i];
            widest = widest > sizes[i] ? widest : sizes[i];
        }
        add_branch(at, outputs, head, group);
    }
    log_std = place(at, dimensions);
    if (dimensions > 0) add_branch(at, dimensions, 0, 0);
    if (of.trunks > 1) trunks.emplace_back(at, of);
    add_branch(at, 1, 0, 0);
    memory.count = at;
}

void Network::add_branch(Size& at, Size outputs, Size first, Size count) {
    branches.push_back({linear(at, hidden, hidden), {}, first, count});
    for (Size head = 0; head < first && head < CONDITIONING; head++)
        branches.back().tables.push_back(place(at, sizes[head] * hidden));
    branches.back().outer = linear(at, hidden, outputs);
}

void Network::pack() {
    for (Trunk& of : trunks) of.pack(memory.values);
    for (Branch& of : branches) {
        of.inner.pack(memory.values);
        of.outer.pack(memory.values);
    }
}

void Network::fit(const Plan& plan) {
    seen.fit(plan.rows, width);
    for (Trunk& of : trunks) of.fit(plan);
    for (Branch& of : branches) {
        of.hidden.fit(plan.rows, hidden);
        of.out.fit(plan.rows, of.outer.out);
    }
}

void Network::features(const Plan& plan) {
    for (Trunk& of : trunks) of.forward(plan, seen);
}

void Network::branch(Branch& of, Size rows, const std::int64_t* actions) {
    of.inner.forward(rows, 0, trunk_of(of).features, of.hidden);
    for (Size r = 0; r < rows; r++)
        for (Size head = 0; head < Size(of.tables.size()); head++) {
            const float* row = memory.values + of.tables[head] + actions[r * heads() + head] * hidden;
            for (Size j = 0; j < hidden; j++) of.hidden.row(r)[j] += row[j];
        }
    activation.forward(rows, of.hidden);
    of.outer.forward(rows, 0, of.hidden, of.out);
}

void Network::backward(const Plan& plan, const std::int64_t* actions) {
    const Size rows = plan.rows;
    g_branch_.fit(rows, hidden);
    for (Trunk& of : trunks) of.g_features.fit(rows, hidden);
    const Trunk* previous = nullptr;
    for (Branch& of : branches) {
        Trunk& trunk = trunk_of(of);
        of.outer.add_gradient(rows, of.hidden, of.out, gradient.data());
        of.outer.backward(rows, 0, of.out, 0, g_branch_, false);
        activation.backward(rows, of.hidden, g_branch_);
        of.inner.add_gradient(rows, trunk.features, g_branch_, gradient.data());
        for (Size r = 0; r < rows; r++)
            for (Size head = 0; head < Size(of.tables.size()); head++) {
                float* to = gradient.data() + of.tables[head] + actions[r * heads() + head] * hidden;
                for (Size j = 0; j < hidden; j++) to[j] += g_branch_.row(r)[j];
            }
        of.inner.backward(rows, 0, g_branch_, 0, trunk.g_features, &trunk == previous);
        previous = &trunk;
    }
    for (Trunk& of : trunks) of.backward(plan, seen, gradient.data());
}

}  // namespace esper::policy
