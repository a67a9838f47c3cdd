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
    constexpr double A[] = {3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3,
        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4,
        2.5090809287301226727e3};
    constexpr double B[] = {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
        2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3};
    constexpr double C[] = {1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
        3.64784832476320460504, 1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2,
        7.74545014278341407640e-4};
    constexpr double D[] = {1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9};
    constexpr double E[] = {6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5,
        2.01033439929228813265e-7};
    constexpr double F[] = {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15};
    const double p = probability > SMALLEST_UNIFORM ? probability : SMALLEST_UNIFORM, q = p - 0.5;
    if (q >= -0.425 && q <= 0.425) {
        const double r = 0.180625 - q * q;
        return q * polynomial(A, r) / polynomial(B, r);
    }
    const double r = __builtin_sqrt(-logarithm(q < 0.0 ? p : 1.0 - p));
    const double far = r <= 5.0 ? polynomial(C, r - 1.6) / polynomial(D, r - 1.6)
                                : polynomial(E, r - 5.0) / polynomial(F, r - 5.0);
    return q < 0.0 ? -far : far;
}

Judged judge_head(
    const float* logits, const std::uint8_t* mask, std::ptrdiff_t size, std::int64_t action, double* log_probs
) {
    constexpr double MASKED = -1e30;  // as in distributions.py
    double highest = -__builtin_inf(), sum = 0.0, entropy = 0.0;
    bool used = false;
    for (std::ptrdiff_t i = 0; i < size; i++) {
        if (mask != nullptr && !mask[i]) continue;
        highest = double(logits[i]) <= highest ? highest : double(logits[i]);
        used = true;
    }
    for (std::ptrdiff_t i = 0; i < size; i++) {
        log_probs[i] = mask == nullptr || mask[i] ? double(logits[i]) - highest : MASKED;
        sum += exponential(log_probs[i]);
    }
    if (!used) return {0.0, 0.0};
    const double log_sum = logarithm(sum);
    for (std::ptrdiff_t i = 0; i < size; i++) {
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
    const float* logits, const std::uint8_t* mask, std::ptrdiff_t size, float highest, const double* uniform,
    double* weights
) {
    double total = 0.0, most = 0.0, sum = 0.0;
    std::int64_t likeliest = 0;
    for (std::ptrdiff_t i = 0; i < size; i++) {
        const double below = double(logits[i]) - double(highest);
        const bool valid = mask == nullptr || mask[i];
        weights[i] = valid ? exponential(below > LOWEST_EXPONENT ? below : LOWEST_EXPONENT) : 0.0;
        total += weights[i];
        if (weights[i] > most) likeliest = i;
        most = weights[i] > most ? weights[i] : most;
    }
    if (uniform == nullptr) return likeliest;
    const double threshold = *uniform * total;
    for (std::ptrdiff_t i = 0; i < size; i++) {
        sum += weights[i];
        if (sum > threshold) return i;
    }
    return 0;
}

}  // namespace esper::policy
