// Features of observations, with or without memory.
#include "policy.h"

namespace esper::policy {

namespace {

LayerNorm norm(Size& at, Size width) { return {width, place(at, width), place(at, width)}; }

void copy(const Rows& from, Size first, Size count, Rows& to, Size to_first) {
    std::memcpy(to.row(to_first), from.row(first), std::size_t(count * from.stride()) * sizeof(float));
}

}  // namespace

Trunk::Trunk(Size& at, const EsperPolicySizes& of)
    : hidden_(of.hidden), lstm_(of.lstm != 0), norms_(of.norms != 0), activation_{of.relu != 0} {
    encoder_ = linear(at, of.width, hidden_);
    if (norms_) first_norm_ = norm(at, hidden_);
    if (!lstm_) return;
    inputs_ = {hidden_, hidden_, 4, place(at, 4 * hidden_ * hidden_)};
    recurrent_ = {hidden_, hidden_, 4, place(at, 4 * hidden_ * hidden_)};
    inputs_.bias = place(at, 4 * hidden_);
    recurrent_.bias = place(at, 4 * hidden_);
    if (norms_) second_norm_ = norm(at, hidden_);
}

void Trunk::pack(const float* values) {
    encoder_.pack(values);
    if (norms_) first_norm_.pack(values);
    if (!lstm_) return;
    if (norms_) second_norm_.pack(values);
    inputs_.pack(values);
    recurrent_.pack(values);
    for (Size n = 0; n < inputs_.outputs(); n++) {  // torch has two biases, whose sum counts
        inputs_.start()[n] += recurrent_.start()[n];
        recurrent_.start()[n] = 0.0f;
    }
}

void Trunk::fit(const Plan& plan) {
    const Size rows = plan.rows;
    for (Rows* of : {&first_normed_, &encoded_, &features}) of->fit(rows, hidden_);
    if (!lstm_) return;
    for (Rows* of : {&h_before, &h, &cell.before, &cell.c, &cell.tanh_c, &second_normed_}) of->fit(rows, hidden_);
    cell.gates.fit(rows, inputs_.outputs());
}

void Trunk::forward(const Plan& plan, const Rows& seen) {
    Rows& into = lstm_ ? encoded_ : features;
    encoder_.forward(plan.rows, 0, seen, norms_ ? first_normed_ : into);
    if (norms_) first_norm_.forward(plan.rows, first_normed_, into);
    activation_.forward(plan.rows, into);
    if (lstm_) remember(plan);
}

void Trunk::remember(const Plan& plan) {
    inputs_.forward(plan.rows, 0, encoded_, cell.gates);
    for (Size t = 0; t < plan.steps; t++) {
        const Size from = plan.first[t], rows = plan.count(t);
        recurrent_.forward(rows, from, h_before, cell.gates, true);
        cell.forward(rows, from, h);
        if (t + 1 == plan.steps) break;
        copy(h, from, plan.count(t + 1), h_before, from + rows);
        copy(cell.c, from, plan.count(t + 1), cell.before, from + rows);
    }
    copy(h, 0, plan.rows, norms_ ? second_normed_ : features, 0);
    if (norms_) second_norm_.forward(plan.rows, second_normed_, features);
}

void Trunk::backward(const Plan& plan, const Rows& seen, float* gradient) {
    if (lstm_) back_through_time(plan, gradient);
    activation_.backward(plan.rows, lstm_ ? encoded_ : features, g_features);
    if (norms_) first_norm_.backward(plan.rows, first_normed_, g_features, gradient);
    encoder_.add_gradient(plan.rows, seen, g_features, gradient);
}

// The gradient of features becomes that of what the LSTM was given.
void Trunk::back_through_time(const Plan& plan, float* gradient) {
    if (norms_) second_norm_.backward(plan.rows, second_normed_, g_features, gradient);
    g_later_.fit(plan.count(0), hidden_);
    std::memset(g_later_.row(0), 0, std::size_t(plan.count(0) * g_later_.stride()) * sizeof(float));
    for (Size t = plan.steps - 1; t >= 0; t--) {
        cell.backward(plan.count(t), plan.first[t], g_features, g_later_);
        if (t > 0) recurrent_.backward(plan.count(t), plan.first[t], cell.gates, plan.first[t - 1], g_features, true);
    }
    inputs_.add_gradient(plan.rows, encoded_, cell.gates, gradient);
    recurrent_.add_gradient(plan.rows, h_before, cell.gates, gradient);
    inputs_.backward(plan.rows, 0, cell.gates, 0, g_features, false);
}

}  // namespace esper::policy
