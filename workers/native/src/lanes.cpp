#include "lanes.h"

namespace esper {

namespace {

// In each group of `2 * half` lanes: sums of lanes `half` apart, those of a in the lower half, those of b in the upper.
template <int half> INLINE Vec folded(Vec a, Vec b) {
    Bits low, high;
    for (int lane = 0; lane < LANES; lane++) {
        int group = lane / (2 * half) * (2 * half), at = lane % half;
        int of = lane % (2 * half) < half ? 0 : LANES;
        low[lane] = of + group + at;
        high[lane] = of + group + at + half;
    }
#if defined(__clang__)
    Vec x, y;
    for (int lane = 0; lane < LANES; lane++) {
        x[lane] = low[lane] < LANES ? a[low[lane]] : b[low[lane] - LANES];
        y[lane] = high[lane] < LANES ? a[high[lane]] : b[high[lane] - LANES];
    }
    return x + y;
#else
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
#endif
}

template <int half> INLINE void fold(Vec* v) {
    if constexpr (half > 0) {
        for (int i = 0; i < half; i++) v[i] = folded<half>(v[i], v[i + half]);
        fold<half / 2>(v);
    }
}

}  // namespace

// LANES values at a time: after each fold half as many vectors hold twice as many values, every one in fewer lanes.
// Values i and i + half share a vector, the first in the lower lanes, so at the end value i is in lane i.
void sums_across(const Vec* values, std::size_t apart, std::size_t count, float* out) {
    std::size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        Vec v[LANES];
        for (int k = 0; k < LANES; k++) v[k] = shares_added(values + i + k, apart);
        fold<LANES / 2>(v);
        __builtin_memcpy(out + i, &v[0], sizeof(Vec));
    }
    for (; i < count; i++) out[i] = across(shares_added(values + i, apart));
}

}  // namespace esper
