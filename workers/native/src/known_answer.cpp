// A fixed chain of multiply-adds, whose bits tell whether this library computes as it was meant to.

#include "lanes.h"

// out[i], i < n: 64 links x <- 1 - (x·x)·(1.5 + i/4096), from x = 1/3, which let no difference in rounding die out.
// A lane is one i, so that no width shows in the bits.
extern "C" __attribute__((visibility("default"))) void esper_known_answer(float* out, int n) {
    const esper::Rounding rounding;
    for (int first = 0; first < n; first += LANES) {
        esper::Vec x = esper::splat(1.0f / 3.0f), steepness;
        for (int lane = 0; lane < LANES; lane++) steepness[lane] = 1.5f + float(first + lane) / 4096.0f;
        for (int link = 0; link < 64; link++) x = esper::fma(x * x, -steepness, esper::splat(1.0f));
        for (int lane = 0; lane < LANES && first + lane < n; lane++) out[first + lane] = x[lane];
    }
}
