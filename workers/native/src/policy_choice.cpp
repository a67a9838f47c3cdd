#include "policy_choice.h"

namespace esper::policy {

namespace {

constexpr double LOWEST_EXPONENT = -700.0;             // as in distributions.py: exp of it is a normal number
constexpr double SMALLEST_UNIFORM = 1.0 / (1ull << 54);  // as there: 0 would be infinitely far out

template <int N> double polynomial(const double (&coefficients)[N], double x) {
    double y = coefficients[N - 1];
    for (int i = N - 2; i >= 0; i--) y = y * x + coefficients[i];
    return y;
}

template <class To, class From> To same_bits(From from) {
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace

// Reduced by multiples of ln 2 in two parts (Cody and Waite 1980, chapter 6), then Taylor's series to r^13 / 13!.
double exponential(double x) {
    constexpr double SERIES[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
        1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    if (x < -708.0) return 0.0;
    if (x > 709.0) return __builtin_inf();
    const double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    const double shifted = x * 1.4426950408889634 + magic, n = shifted - magic;
    const double r = (x - n * 0.69314718036912381649) - n * 1.9082149292705877e-10;
    return polynomial(SERIES, r) * same_bits<double>((same_bits<std::uint64_t>(shifted) + 1023) << 52);
}

// x = 2^n m with m around 1; ln m = 2 artanh s with s = (m - 1) / (m + 1), by its series to s^23 / 23.
double logarithm(double x) {
    constexpr double SERIES[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
        1.0 / 21, 1.0 / 23};
    constexpr std::uint64_t ROOT_HALF = 0x3fe6a09e667f3bcdull;
    if (!(x > 0.0) || x == __builtin_inf()) return x == 0.0 ? -__builtin_inf() : x;
    const std::uint64_t bits = same_bits<std::uint64_t>(x) - ROOT_HALF;
    const double n = double(std::int64_t(bits) >> 52);
    const double f = same_bits<double>((bits & 0x000fffffffffffffull) + ROOT_HALF) - 1.0;
    const double s = f / (f + 2.0), square = s * s;
    const double y = 2.0 * s * square * polynomial(SERIES, square) + (n * 1.9082149292705877e-10 + 2.0 * s);
    return n * 0.69314718036912381649 + y;
}

// Algorithm AS 241, PPND16 (Wichura 1988, Applied Statistics 37, 477-484): relative error about 1e-16.
double normal_quantile(double probability) {
    constexpr double A[] = {3.3871328727963666, 133.14166789178438, 1971.5909503065514, 13731.693765509461,
        45921.953931549872, 67265.770927008701, 33430.575583588128, 2509.0809287301227};
    constexpr double B[] = {1.0, 42.313330701600911, 687.18700749205791, 5394.1960214247511, 21213.794301586596,
        39307.895800092711, 28729.085735721943, 5226.4952788528546};
    constexpr double C[] = {1.4234371107496836, 4.6303378461565453, 5.7694972214606914, 3.6478483247632046,
        1.2704582524523684, 0.24178072517745061, 0.022723844989269185, 7.7454501427834141e-4};
    constexpr double D[] = {1.0, 2.0531916266377588, 1.6763848301838038, 0.68976733498510000, 0.14810397642748007,
        0.015198666563616457, 5.4759380849953449e-4, 1.0507500716444168e-9};
    constexpr double E[] = {6.6579046435011038, 5.4637849111641144, 1.7848265399172913, 0.29656057182850489,
        0.026532189526576123, 1.2426609473880784e-3, 2.7115555687434876e-5, 2.0103343992922881e-7};
    constexpr double F[] = {1.0, 0.59983220655588794, 0.13692988092273581, 0.014875361290850615,
        7.8686913114561326e-4, 1.8463183175100547e-5, 1.4215117583164459e-7, 2.0442631033899398e-15};
    const double p = probability > SMALLEST_UNIFORM ? probability : SMALLEST_UNIFORM, q = p - 0.5;
    const double near = 0.180625 - q * q;
    if (near >= 0.0) return q * polynomial(A, near) / polynomial(B, near);
    const double r = __builtin_sqrt(-logarithm(q < 0.0 ? p : 1.0 - p));
    const double far = r <= 5.0 ? polynomial(C, r - 1.6) / polynomial(D, r - 1.6)
                                : polynomial(E, r - 5.0) / polynomial(F, r - 5.0);
    return q < 0.0 ? -far : far;
}

Judged judge_head(const float* logits, const std::uint8_t* mask, Size size, std::int64_t action, double* log_probs) {
    constexpr double MASKED = -1e30;  // as in distributions.py
    double highest = -__builtin_inf(), sum = 0.0, entropy = 0.0;
    bool used = false;
    for (Size i = 0; i < size; i++) {
        if (mask != nullptr && !mask[i]) continue;
        highest = double(logits[i]) <= highest ? highest : double(logits[i]);
        used = true;
    }
    for (Size i = 0; i < size; i++) {
        log_probs[i] = mask == nullptr || mask[i] ? double(logits[i]) - highest : MASKED;
        sum += exponential(log_probs[i]);
    }
    if (!used) return {0.0, 0.0};
    const double log_sum = logarithm(sum);
    for (Size i = 0; i < size; i++) {
        log_probs[i] -= log_sum;
        if (mask == nullptr || mask[i]) entropy -= exponential(log_probs[i]) * log_probs[i];
    }
    return {log_probs[action], entropy};
}

Judged judge_normal(double mean, double log_std, double action, double& distance) {
    distance = (action - mean) / exponential(log_std);
    return {-0.5 * (distance * distance) - log_std - LOG_ROOT_TWO_PI, log_std + (0.5 + LOG_ROOT_TWO_PI)};
}

std::int64_t draw(
    const float* logits, const std::uint8_t* mask, Size size, float highest, const double* uniform,
    double* weights
) {
    double total = 0.0, most = 0.0, sum = 0.0;
    std::int64_t likeliest = 0;
    for (Size i = 0; i < size; i++) {
        const double below = double(logits[i]) - double(highest);
        const bool valid = mask == nullptr || mask[i];
        weights[i] = valid ? exponential(below > LOWEST_EXPONENT ? below : LOWEST_EXPONENT) : 0.0;
        total += weights[i];
        if (weights[i] > most) likeliest = i;
        most = weights[i] > most ? weights[i] : most;
    }
    if (uniform == nullptr) return likeliest;
    const double threshold = *uniform * total;
    for (Size i = 0; i < size; i++) {
        sum += weights[i];
        if (sum > threshold) return i;
    }
    return 0;
}

}  // namespace esper::policy
