#include "lanes.h"

namespace esper {

namespace {

template <int half> INLINE void fold(Vec* v) {
    if constexpr (half > 0) {
        for (int i = 0; i < half; i++) {
            const Halves<half> halves(v[i], v[i + half]);
            v[i] = halves.low + halves.high;
        }
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
