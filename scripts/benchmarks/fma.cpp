// Nothing but fused multiply-adds in registers: the most that one thread of this processor can do in float32.
#if defined(__AVX512F__)
constexpr int lanes = 16, accumulators = 24;
#else
constexpr int lanes = 8, accumulators = 12;
#endif
typedef float Vector __attribute__((vector_size(4 * lanes)));

// Runs `rounds` rounds and returns the operations of a round, two per multiply-add.
// `out` keeps the compiler from dropping the work.
extern "C" long fma_rounds(long rounds, float *out) {
    Vector sum[accumulators], factor = {}, term = {};
    for (int lane = 0; lane < lanes; ++lane) factor[lane] = 0.999f, term[lane] = 1e-3f;
    for (int i = 0; i < accumulators; ++i) sum[i] = term * static_cast<float>(i);
    for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
        for (int i = 0; i < accumulators; ++i) sum[i] = sum[i] * factor + term;
    }
    Vector whole = {};
    for (int i = 0; i < accumulators; ++i) whole += sum[i];
    for (int lane = 0; lane < lanes; ++lane) out[lane] = whole[lane];
    return 2L * lanes * accumulators;
}
