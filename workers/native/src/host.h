// The host: its shape, the memory of its activations, its levels forward and backward.
#pragma once

#include <vector>

#include "seed.h"

namespace esper {

constexpr float BN_EPS = 1e-5f, BN_MOMENTUM = 0.1f;

// One level of the host's shape. `kernel`, `gain`, `bias`: offsets of its parameters in the host's row.
struct LevelShape {
    int in, out, taps, wide;
    Plane plane, after;  // of its input; of its output
    bool pools;
    int kernel, gain, bias;

    Kernel weights(const float* row) const { return Kernel{row + kernel, out, in, wide, taps}; }
    std::size_t padded() const { return std::size_t(out + TILE); }
};

struct HostShape {
    std::vector<LevelShape> levels;
    int classes = 0, features = 0, parameters = 0;
    Linear head;
    Plane last;

    HostShape(const EsperHost& host, int border);  // must be valid
};

// Memory for training one level, besides its input and output.
struct LevelMemory {
    Maps wide, top, seeded;  // the convolution's output, pooled; the level's output if a seed follows
    std::vector<float> packed, turned, sign, shift, mean, spread, scale, slope, constant, sums;
    Vectors lanes;  // [shares][2 * out]
    SlotMemory slot;

    void fit(const LevelShape& shape, int packs, bool with_seed);
};

// A minibatch in packs; the last may be partly empty.
struct Batch {
    int samples, packs;

    explicit Batch(int n) : samples(n), packs(packs_of(n)) {}
    int in_pack(int pack) const { return pack + 1 < packs ? LANES : samples - (packs - 1) * LANES; }
};

// One level, forward and backward. The sign of the gain is moved into the kernel, so that batch norm is monotonic and
// max-pooling can come first. `shift`, a number near the mean, is subtracted from the outputs of the convolution,
// so that their moments do not cancel.
class TrainedLevel {
public:
    TrainedLevel(const LevelShape& shape, LevelMemory& memory) : shape_(shape), memory_(memory) {}

    void find_shift(const float* row, const Maps& in, const Batch& batch);  // from the first unit of samples
    void forward(const float* row, const Maps& in, Maps& out, const Batch& batch, float* mean, float* var);
    // `g`: the output's gradient. Adds the kernel's gradient to `sums`; writes the input's to `into` unless null.
    void backward(const Maps& in, Maps& g, Maps* into, const Batch& batch, Vec* sums, std::size_t parameters);
    void finish_gradient(float* gradient) const;  // restores the kernel's sign; adds gain and bias

private:
    void pack(const float* row);
    void convolve_batch(const Maps& in, const Batch& batch, int packs);
    template <bool ragged> void convolve_pack(const Maps& in, int pack, Bits valid);
    void convolve_singles(const Maps& in, const Batch& batch, int packs);
    void recentre(int o, float& centre, float& spread, const Batch& batch) const;
    void gather_gradient(Maps& g, const Batch& batch);
    void widen(const Maps& g, int pack, int from, int to, const Batch& batch);

    const LevelShape& shape_;
    LevelMemory& memory_;
    const float* row_ = nullptr;
    float count_ = 0.0f;
};

// Copies images, selected by indices in `order`, into packs of `in`; empty lanes are zero.
void gather_images(const EsperSplit& split, const std::int64_t* order, int samples, int channels, Maps& in, int pack);

}  // namespace esper

struct EsperWorkspace {
    EsperHost host;
    int border;
    esper::HostShape shape;
    std::vector<esper::Maps> features, gradients;  // [levels + 1]: the image, then behind every slot
    std::vector<esper::LevelMemory> levels;
    std::vector<esper::Maps> measured;  // evaluation: before and behind every slot
    std::vector<std::vector<float>> folded, folded_bias;
    std::vector<esper::SlotMemory> measured_slots;
    esper::Vectors sums, small;
    std::vector<float> gradient;

    EsperWorkspace(const EsperHost& of, int b) : host(of), border(b), shape(of, b) {}
};
