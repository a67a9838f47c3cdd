// Parameters, forward and backward passes.
#include "policy.h"

namespace esper::policy {

namespace {

constexpr Size CONDITIONING = 2;  // leading heads whose choices later groups know

Size place(Size& at, Size count) {
    const Size here = at;
    at += count;
    return here;
}

Linear linear(Size& at, Size in, Size out, Size blocks = 1) {
    Linear made;
    made.in = in;
    made.out = out;
    made.blocks = blocks;
    made.weight = place(at, in * out * blocks);
    return made;
}

Linear biased(Size& at, Size in, Size out) {
    Linear made = linear(at, in, out);
    made.bias = place(at, out);
    return made;
}

LayerNorm norm(Size& at, Size width) {
    LayerNorm made;
    made.width = width;
    made.gain = place(at, width);
    made.bias = place(at, width);
    return made;
}

}  // namespace

// --- which steps ----------------------------------------------------------------------------------------------------

void Plan::one_step(Size batch) {
    steps = 1;
    rows = valid = batch;
    first.assign({0, batch});
}

bool Plan::of(const EsperPolicyArrays& arrays, const std::int64_t* chosen, Size n) {
    const Size apart = arrays.sequences;
    lengths_.resize(std::size_t(n));
    first.assign(std::size_t(arrays.steps) + 1, 0);
    places_.assign(std::size_t(arrays.steps) + 1, 0);
    for (Size i = 0; i < n; i++) {
        Size length = arrays.steps;
        const std::uint8_t* valid_of = arrays.valid + (chosen == nullptr ? i : chosen[i]);
        while (length > 0 && !valid_of[(length - 1) * apart]) length--;
        lengths_[std::size_t(i)] = length;
        places_[std::size_t(length)]++;
        for (Size t = 0; t < length; t++) first[std::size_t(t) + 1]++;
    }
    steps = 0;
    while (steps < arrays.steps && first[std::size_t(steps) + 1] > 0) steps++;
    for (Size t = 0; t < steps; t++) first[std::size_t(t) + 1] += first[std::size_t(t)];
    rows = steps > 0 ? first[std::size_t(steps)] : 0;
    Size place = 0;  // of the sequences of a length, the longest first
    for (Size length = arrays.steps; length > 0; length--) {
        const Size count = places_[std::size_t(length)];
        places_[std::size_t(length)] = place;
        place += count;
    }
    sequence.resize(std::size_t(place));
    for (Size i = 0; i < n; i++) {
        const Size length = lengths_[std::size_t(i)];
        if (length > 0) sequence[std::size_t(places_[std::size_t(length)]++)] = chosen == nullptr ? i : chosen[i];
    }
    source.resize(std::size_t(rows));
    counts.resize(std::size_t(rows));
    valid = 0;
    for (Size t = 0, row = 0; t < steps; t++)
        for (Size i = 0; i < count(t); i++, row++) {
            source[std::size_t(row)] = t * apart + sequence[std::size_t(i)];
            counts[std::size_t(row)] = arrays.valid[source[std::size_t(row)]] != 0;
            valid += counts[std::size_t(row)];
        }
    return valid > 0;
}

// --- parameters -----------------------------------------------------------------------------------------------------

Network::Network(const EsperPolicySizes& of, const EsperPolicyMemory& kept)
    : width(of.width), hidden(of.hidden), dimensions(of.n_heads > 0 ? 0 : of.dimensions), lstm(of.lstm != 0),
      sizes(of.sizes, of.sizes + of.n_heads), memory(kept) {
    Size at = 0;
    encoder_ = biased(at, width, hidden);
    first_norm_ = norm(at, hidden);
    if (lstm) {
        inputs_ = linear(at, hidden, hidden, 4);
        recurrent_ = linear(at, hidden, hidden, 4);
        inputs_.bias = place(at, 4 * hidden);
        recurrent_.bias = place(at, 4 * hidden);
        second_norm_ = norm(at, hidden);
        cell_.width = hidden;
    }
    const Size count = Size(sizes.size());
    for (Size head = 0; head < count; head = head < CONDITIONING ? head + 1 : count) {
        Size outputs = 0;
        const Size heads = head < CONDITIONING ? 1 : count - head;
        for (Size i = head; i < head + heads; i++) {
            starts.push_back(outputs);
            outputs += sizes[std::size_t(i)];
            widest = widest > sizes[std::size_t(i)] ? widest : sizes[std::size_t(i)];
        }
        add_branch(at, outputs, head, heads);
    }
    if (dimensions > 0) {
        log_std = place(at, dimensions);
        add_branch(at, dimensions, 0, 0);
    }
    add_branch(at, 1, 0, 0);
    memory.count = at;
}

void Network::add_branch(Size& at, Size outputs, Size first, Size heads) {
    Branch made;
    made.inner = biased(at, hidden, hidden);
    for (Size head = 0; head < first && head < CONDITIONING; head++)
        made.tables.push_back(place(at, sizes[std::size_t(head)] * hidden));
    made.outer = biased(at, hidden, outputs);
    made.first = first;
    made.heads = heads;
    branches.push_back(std::move(made));
}

void Network::pack() {
    gradient.resize(std::size_t(padded(memory.count)));
    encoder_.pack(memory.values);
    first_norm_.pack(memory.values);
    if (lstm) {
        inputs_.pack(memory.values);
        recurrent_.pack(memory.values);
        for (Size n = 0; n < inputs_.outputs(); n++) {  // torch has two biases, whose sum counts
            inputs_.start()[n] += recurrent_.start()[n];
            recurrent_.start()[n] = 0.0f;
        }
        second_norm_.pack(memory.values);
    }
    for (Branch& of : branches) {
        of.inner.pack(memory.values);
        of.outer.pack(memory.values);
    }
}

// --- forward --------------------------------------------------------------------------------------------------------

void Network::fit(const Plan& plan) {
    const Size rows = plan.rows, begun = plan.count(0);
    seen.fit(rows, width);
    for (Rows* of : {&first_normed_, &encoded_, &features}) of->fit(rows, hidden);
    first_inverse_.resize(std::size_t(rows));
    for (Branch& of : branches) {
        of.hidden.fit(rows, hidden);
        of.out.fit(rows, of.outer.out);
    }
    if (!lstm) return;
    for (Rows* of : {&h_before, &c_before, &h, &c, &tanh_c_, &second_normed_}) of->fit(rows, hidden);
    gates_.fit(rows, inputs_.outputs());
    g_later_.fit(begun, hidden);
    second_inverse_.resize(std::size_t(rows));
}

void Network::encode(Size rows) {
    encoder_.forward(rows, left_of(seen), first_normed_.row(0), first_normed_.stride());
    Rows& into = lstm ? encoded_ : features;
    first_norm_.forward(rows, first_normed_, first_inverse_.data(), into);
    squash(rows, into);
}

void Network::remember(const Plan& plan) {
    inputs_.forward(plan.rows, left_of(encoded_), gates_.row(0), gates_.stride());
    for (Size t = 0; t < plan.steps; t++) {
        const Size from = plan.first[std::size_t(t)], rows = plan.count(t), stride = h.stride();
        recurrent_.forward(rows, left_of(h_before, from), gates_.row(from), gates_.stride(), true);
        cell_.forward(rows, gates_, from, c_before.row(from), c, tanh_c_, h);
        if (t + 1 == plan.steps) break;
        const std::size_t bytes = std::size_t(plan.count(t + 1) * stride) * sizeof(float);
        std::memcpy(h_before.row(from + rows), h.row(from), bytes);
        std::memcpy(c_before.row(from + rows), c.row(from), bytes);
    }
    std::memcpy(second_normed_.row(0), h.row(0), std::size_t(plan.rows * h.stride()) * sizeof(float));
    second_norm_.forward(plan.rows, second_normed_, second_inverse_.data(), features);
}

void Network::trunk(const Plan& plan) {
    encode(plan.rows);
    if (lstm) remember(plan);
}

void Network::branch(Branch& of, Size rows, const std::int64_t* actions) {
    of.inner.forward(rows, left_of(features), of.hidden.row(0), of.hidden.stride());
    const Size heads = Size(sizes.size());
    for (Size r = 0; r < rows; r++)
        for (std::size_t head = 0; head < of.tables.size(); head++) {
            const float* row = memory.values + of.tables[head] + actions[r * heads + Size(head)] * hidden;
            float* to = of.hidden.row(r);
            for (Size j = 0; j < hidden; j++) to[j] += row[j];
        }
    squash(rows, of.hidden);
    of.outer.forward(rows, left_of(of.hidden), of.out.row(0), of.out.stride());
}

// --- backward -------------------------------------------------------------------------------------------------------

// From the gradients of all outputs, in `out` of the branches, to `gradient`, but for log_std's.
void Network::backward(const Plan& plan, const std::int64_t* actions) {
    const Size rows = plan.rows, heads = Size(sizes.size());
    g_features_.fit(rows, hidden);
    g_branch_.fit(rows, hidden);
    for (Branch& of : branches) {
        of.outer.gradient(rows, of.hidden, of.out, gradient.data());
        of.outer.backward(rows, of.out.row(0), of.out.stride(), g_branch_, 0, false);
        unsquash(rows, of.hidden, g_branch_);
        of.inner.gradient(rows, features, g_branch_, gradient.data());
        for (std::size_t head = 0; head < of.tables.size(); head++)
            for (Size r = 0; r < rows; r++) {
                float* to = gradient.data() + of.tables[head] + actions[r * heads + Size(head)] * hidden;
                const float* from = g_branch_.row(r);
                for (Size j = 0; j < hidden; j++) to[j] += from[j];
            }
        of.inner.backward(rows, g_branch_.row(0), g_branch_.stride(), g_features_, 0, &of != &branches.front());
    }
    if (lstm) forget(plan);
    unsquash(rows, lstm ? encoded_ : features, g_features_);
    first_norm_.backward(rows, first_normed_, first_inverse_.data(), g_features_, gradient.data());
    encoder_.gradient(rows, seen, g_features_, gradient.data());
}

// Back through time: the gradient of features becomes that of what the LSTM was given.
void Network::forget(const Plan& plan) {
    second_norm_.backward(plan.rows, second_normed_, second_inverse_.data(), g_features_, gradient.data());
    std::memset(g_later_.row(0), 0, std::size_t(plan.count(0) * g_later_.stride()) * sizeof(float));
    for (Size t = plan.steps - 1; t >= 0; t--) {
        const Size from = plan.first[std::size_t(t)], rows = plan.count(t);
        cell_.backward(rows, gates_, from, c_before.row(from), tanh_c_, g_features_, g_later_);
        if (t == 0) break;
        recurrent_.backward(rows, gates_.row(from), gates_.stride(), g_features_, plan.first[std::size_t(t) - 1], true);
    }
    inputs_.gradient(plan.rows, encoded_, gates_, gradient.data());
    recurrent_.gradient(plan.rows, h_before, gates_, gradient.data());
    inputs_.backward(plan.rows, gates_.row(0), gates_.stride(), g_features_, 0, false);
}

}  // namespace esper::policy
