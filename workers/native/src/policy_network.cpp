// Parameters, forward and backward passes.
#include "policy.h"

namespace esper::policy {

namespace {

Size place(Size& at, Size count) { return (at += count) - count; }

Linear linear(Size& at, Size in, Size out) { return {in, out, 1, place(at, in * out), place(at, out)}; }

LayerNorm norm(Size& at, Size width) { return {width, place(at, width), place(at, width)}; }

void copy(const Rows& from, Size first, Size count, Rows& to, Size to_first) {
    std::memcpy(to.row(to_first), from.row(first), std::size_t(count * from.stride()) * sizeof(float));
}

}  // namespace

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
    : width(of.width), hidden(of.hidden), dimensions(of.dimensions), lstm(of.lstm != 0),
      sizes(of.sizes, of.sizes + of.n_heads), memory(kept) {
    Size at = 0;
    encoder_ = linear(at, width, hidden);
    first_norm_ = norm(at, hidden);
    if (lstm) {
        inputs_ = {hidden, hidden, 4, place(at, 4 * hidden * hidden)};
        recurrent_ = {hidden, hidden, 4, place(at, 4 * hidden * hidden)};
        inputs_.bias = place(at, 4 * hidden);
        recurrent_.bias = place(at, 4 * hidden);
        second_norm_ = norm(at, hidden);
    }
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
    encoder_.pack(memory.values);
    first_norm_.pack(memory.values);
    for (Branch& of : branches) {
        of.inner.pack(memory.values);
        of.outer.pack(memory.values);
    }
    if (!lstm) return;
    second_norm_.pack(memory.values);
    inputs_.pack(memory.values);
    recurrent_.pack(memory.values);
    for (Size n = 0; n < inputs_.outputs(); n++) {  // torch has two biases, whose sum counts
        inputs_.start()[n] += recurrent_.start()[n];
        recurrent_.start()[n] = 0.0f;
    }
}

void Network::fit(const Plan& plan) {
    const Size rows = plan.rows;
    seen.fit(rows, width);
    for (Rows* of : {&first_normed_, &encoded_, &features}) of->fit(rows, hidden);
    for (Branch& of : branches) {
        of.hidden.fit(rows, hidden);
        of.out.fit(rows, of.outer.out);
    }
    if (!lstm) return;
    for (Rows* of : {&h_before, &h, &cell.before, &cell.c, &cell.tanh_c, &second_normed_}) of->fit(rows, hidden);
    cell.gates.fit(rows, inputs_.outputs());
}

void Network::trunk(const Plan& plan) {
    Rows& into = lstm ? encoded_ : features;
    encoder_.forward(plan.rows, 0, seen, first_normed_);
    first_norm_.forward(plan.rows, first_normed_, into);
    squash(plan.rows, into);
    if (lstm) remember(plan);
}

void Network::remember(const Plan& plan) {
    inputs_.forward(plan.rows, 0, encoded_, cell.gates);
    for (Size t = 0; t < plan.steps; t++) {
        const Size from = plan.first[t], rows = plan.count(t);
        recurrent_.forward(rows, from, h_before, cell.gates, true);
        cell.forward(rows, from, h);
        if (t + 1 == plan.steps) break;
        copy(h, from, plan.count(t + 1), h_before, from + rows);
        copy(cell.c, from, plan.count(t + 1), cell.before, from + rows);
    }
    copy(h, 0, plan.rows, second_normed_, 0);
    second_norm_.forward(plan.rows, second_normed_, features);
}

void Network::branch(Branch& of, Size rows, const std::int64_t* actions) {
    of.inner.forward(rows, 0, features, of.hidden);
    for (Size r = 0; r < rows; r++)
        for (Size head = 0; head < Size(of.tables.size()); head++) {
            const float* row = memory.values + of.tables[head] + actions[r * heads() + head] * hidden;
            for (Size j = 0; j < hidden; j++) of.hidden.row(r)[j] += row[j];
        }
    squash(rows, of.hidden);
    of.outer.forward(rows, 0, of.hidden, of.out);
}

void Network::backward(const Plan& plan, const std::int64_t* actions) {
    const Size rows = plan.rows;
    g_features_.fit(rows, hidden);
    g_branch_.fit(rows, hidden);
    for (Branch& of : branches) {
        of.outer.add_gradient(rows, of.hidden, of.out, gradient.data());
        of.outer.backward(rows, 0, of.out, 0, g_branch_, false);
        unsquash(rows, of.hidden, g_branch_);
        of.inner.add_gradient(rows, features, g_branch_, gradient.data());
        for (Size r = 0; r < rows; r++)
            for (Size head = 0; head < Size(of.tables.size()); head++) {
                float* to = gradient.data() + of.tables[head] + actions[r * heads() + head] * hidden;
                for (Size j = 0; j < hidden; j++) to[j] += g_branch_.row(r)[j];
            }
        of.inner.backward(rows, 0, g_branch_, 0, g_features_, &of != &branches.front());
    }
    if (lstm) back_through_time(plan);
    unsquash(rows, lstm ? encoded_ : features, g_features_);
    first_norm_.backward(rows, first_normed_, g_features_, gradient.data());
    encoder_.add_gradient(rows, seen, g_features_, gradient.data());
}

// The gradient of features becomes that of what the LSTM was given.
void Network::back_through_time(const Plan& plan) {
    second_norm_.backward(plan.rows, second_normed_, g_features_, gradient.data());
    g_later_.fit(plan.count(0), hidden);
    std::memset(g_later_.row(0), 0, std::size_t(plan.count(0) * g_later_.stride()) * sizeof(float));
    for (Size t = plan.steps - 1; t >= 0; t--) {
        cell.backward(plan.count(t), plan.first[t], g_features_, g_later_);
        if (t > 0) recurrent_.backward(plan.count(t), plan.first[t], cell.gates, plan.first[t - 1], g_features_, true);
    }
    inputs_.add_gradient(plan.rows, encoded_, cell.gates, gradient.data());
    recurrent_.add_gradient(plan.rows, h_before, cell.gates, gradient.data());
    inputs_.backward(plan.rows, 0, cell.gates, 0, g_features_, false);
}

}  // namespace esper::policy
