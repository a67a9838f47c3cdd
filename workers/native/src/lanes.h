// Vectors whose lanes are samples of a minibatch, and the arithmetic on them.
//
// Fused multiply-adds are explicit and the compiler contracts nothing, so builds with 8 and 16 lanes give equal bits:
// work per sample is the same in every lane, and a sum over samples has UNIT accumulators whatever the width.
// Narrower vectors process them in several shares (`share`), and `across` adds them in the order of the widest.
#pragma once

#include <cstddef>
#include <cstdint>
#if defined(__SSE__)
#include <immintrin.h>
#endif
#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#ifndef LANES
#error "LANES is the number of floats in a vector: 4, 8 or 16"
#endif
#define INLINE inline __attribute__((always_inline))

namespace esper {

constexpr int UNIT = 16;
constexpr int SHARES = UNIT / LANES;
static_assert(SHARES * LANES == UNIT, "a width divides the widest");

typedef float Vec __attribute__((vector_size(4 * LANES), aligned(4 * LANES)));
typedef std::int32_t Bits __attribute__((vector_size(4 * LANES), aligned(4 * LANES)));

INLINE int share(int pack) { return pack % SHARES; }

INLINE Vec splat(float x) {  // not Vec{} + x, which would cost an addition
#if LANES == 16 && defined(__AVX512F__)
    return (Vec)_mm512_set1_ps(x);
#elif LANES == 8 && defined(__AVX__)
    return (Vec)_mm256_set1_ps(x);
#elif LANES == 4
    return Vec{x, x, x, x};
#else
    Vec y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = x;
    return y;
#endif
}
INLINE Vec pick(Bits where, Vec a, Vec b) { return where ? a : b; }
INLINE Vec kept(Bits where, Vec a) { return (Vec)((Bits)a & where); }
INLINE Vec greatest(Vec a, Vec b) { return a > b ? a : b; }
INLINE Vec rectified(Vec x) { return Vec{} > x ? Vec{} : x; }  // NaN stays NaN

// a * b + c
INLINE Vec fma(Vec a, Vec b, Vec c) {
#if LANES == 16 && defined(__AVX512F__)
    return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif LANES == 8 && defined(__FMA__)
    return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif LANES == 4 && defined(__FMA__)
    return (Vec)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
#elif LANES == 4 && defined(__ARM_NEON) && defined(__aarch64__)
    return (Vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

INLINE Vec root(Vec x) {
#if LANES == 16 && defined(__AVX512F__)
    return (Vec)_mm512_maskz_sqrt_ps(__mmask16(-1), (__m512)x);
#elif LANES == 8 && defined(__AVX__)
    return (Vec)_mm256_sqrt_ps((__m256)x);
#else
    Vec y;
    for (int lane = 0; lane < LANES; lane++) y[lane] = __builtin_sqrtf(x[lane]);
    return y;
#endif
}

// The first `count` lanes.
INLINE Bits first_lanes(int count) {
    Bits at;
    for (int lane = 0; lane < LANES; lane++) at[lane] = lane;
    return at < (Bits{} + count);
}

// --- elementary functions with fitted coefficients; relative error below 3e-7 --- -----------------------------------

// e^x, clamped to e^-87 … e^88, just inside the normal numbers.
INLINE Vec exponential(Vec x) {
    x = x > splat(88.0f) ? splat(88.0f) : x;
    x = x < splat(-87.0f) ? splat(-87.0f) : x;
    const Vec magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
    Vec shifted = fma(x, splat(1.44269504f), magic);
    Vec n = shifted - magic;
    Vec r = fma(n, splat(-0.693145752f), x);
    r = fma(n, splat(-1.42860677e-6f), r);
    Vec q = splat(0.0013950601f);
    q = fma(q, r, splat(0.00836895406f));
    q = fma(q, r, splat(0.0416662060f));
    q = fma(q, r, splat(0.166665182f));
    q = fma(q, r, splat(0.5f));
    Vec y = fma(q, r * r, r) + splat(1.0f);
    Bits power = ((Bits)shifted << 23) + (127 << 23);
    return y * (Vec)power;
}

// ln x for a positive normal number.
INLINE Vec logarithm(Vec x) {
    Bits bits = (Bits)x - 0x3f3504f3;  // sqrt(1/2), so that the mantissa is centred on 1
    Bits power = bits >> 23;
    Vec f = (Vec)((bits & 0x007fffff) + 0x3f3504f3) - splat(1.0f);
    Vec n = __builtin_convertvector(power, Vec);
    Vec q = splat(-0.0786088184f);
    q = fma(q, f, splat(0.128834829f));
    q = fma(q, f, splat(-0.131291166f));
    q = fma(q, f, splat(0.141809598f));
    q = fma(q, f, splat(-0.166244969f));
    q = fma(q, f, splat(0.200022951f));
    q = fma(q, f, splat(-0.250008106f));
    q = fma(q, f, splat(0.333333164f));
    Vec square = f * f;
    Vec y = fma(q * square, f, splat(-0.5f) * square) + f;
    y = fma(n, splat(1.42860677e-6f), y);
    return pick(x == x, fma(n, splat(0.693145752f), y), x);
}

INLINE Vec logistic(Vec x) { return splat(1.0f) / (splat(1.0f) + exponential(-x)); }

INLINE Vec hyperbolic_tangent(Vec x) {
    Vec size = x < Vec{} ? -x : x;
    Vec z = x * x;
    Vec q = splat(-0.00571703259f);
    q = fma(q, z, splat(0.0206505749f));
    q = fma(q, z, splat(-0.0537434928f));
    q = fma(q, z, splat(0.133314908f));
    q = fma(q, z, splat(-0.333332837f));
    Vec near = fma(q * z, x, x);
    Vec far = splat(1.0f) - splat(2.0f) / (exponential(size + size) + splat(1.0f));
    return pick(size < splat(0.625f), near, x < Vec{} ? -far : far);
}

// --- sums over samples ----------------------------------------------------------------------------------------------

// One accumulator per sample of a unit.
struct Sum {
    Vec of[SHARES];
};

INLINE Vec shares_added(const Vec* shares, std::size_t apart) {
#if LANES == 4
    return (shares[0] + shares[2 * apart]) + (shares[apart] + shares[3 * apart]);
#elif LANES == 8
    return shares[0] + shares[apart];
#else
    (void)apart;
    return shares[0];
#endif
}

INLINE float across(Vec x) {
    float part[LANES];
    __builtin_memcpy(part, &x, sizeof part);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++) part[lane] += part[lane + half];
    return part[0];
}

INLINE float across(const Sum& sum) { return across(shares_added(sum.of, 1)); }

// In each group of 2 * `half` lanes: a's and b's lower halves, and their upper halves.
template <int half> struct Halves {
    Vec low, high;

    INLINE Halves(Vec a, Vec b) {
        Bits at_low, at_high;
        for (int lane = 0; lane < LANES; lane++) {
            const int within = lane / (2 * half) * (2 * half) + lane % half;
            at_low[lane] = lane % (2 * half) < half ? within : LANES + within;
            at_high[lane] = at_low[lane] + half;
        }
#if defined(__clang__)
        for (int lane = 0; lane < LANES; lane++) {
            low[lane] = at_low[lane] < LANES ? a[at_low[lane]] : b[at_low[lane] - LANES];
            high[lane] = at_high[lane] < LANES ? a[at_high[lane]] : b[at_high[lane] - LANES];
        }
#else
        low = __builtin_shuffle(a, b, at_low);
        high = __builtin_shuffle(a, b, at_high);
#endif
    }
};

// Lane i of vector k becomes lane k of vector i.
template <int half = LANES / 2> INLINE void transpose(Vec* v) {
    if constexpr (half > 0) {
        for (int i = 0; i < LANES; i++) {
            if (i & half) continue;
            const Halves<half> halves(v[i], v[i + half]);
            v[i] = halves.low;
            v[i + half] = halves.high;
        }
        transpose<half / 2>(v);
    }
}

// out[i] = sum of values[i] over all lanes and shares, in the order of `across`; `apart`: stride between shares.
void sums_across(const Vec* values, std::size_t apart, std::size_t count, float* out);

// --- the processor's rounding ---------------------------------------------------------------------------------------

// While alive, rounds to nearest and flushes subnormal numbers to zero, whatever the caller had set.
class Rounding {
public:
#if defined(__SSE__)
    Rounding() : before_(_mm_getcsr()) { _mm_setcsr(0x9fc0); }
    ~Rounding() { _mm_setcsr(before_); }

private:
    unsigned before_;
#elif defined(__aarch64__)
    Rounding() {
        __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
        std::uint64_t ours = std::uint64_t(1) << 24;
        __asm__ volatile("msr fpcr, %0" : : "r"(ours));
    }
    ~Rounding() { __asm__ volatile("msr fpcr, %0" : : "r"(before_)); }

private:
    std::uint64_t before_;
#endif
};

}  // namespace esper
