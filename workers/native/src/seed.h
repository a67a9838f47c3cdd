// A seed in a slot: a chain of layers that computes d = s(x) - x, and how d joins the host's features h.
//
// With d^ = d min(1, rms(h) / rms(d)): add h + alpha d^, gate h + alpha g(h) d^, multiply h (1 + alpha tanh d); while
// incubating, the output is h and d learns as if d^ were added whole. x is h behind a stop; for a fossil, h itself.
#pragma once

#include <array>
#include <initializer_list>
#include <vector>

#include "api.h"
#include "norms.h"
#include "perceptron.h"

namespace esper {

struct Layer {
    EsperLayerKind kind;
    int in, out, size;
    int at[3];  // offsets in the compact parameters
    bool relu;  // followed by a ReLU, part of this layer

    Kernel kernel(const float* p) const { return Kernel{p + at[0], out, kind == ESPER_DEPTHWISE ? 1 : in, size, size}; }
    Perceptron perceptron() const { return {{in, size, at[0], -1}, {size, in, at[1], at[2]}}; }
    int kept() const;  // vectors per pack, besides the output, that the backward pass needs
};

// Memory of one slot, for any seed in it.
struct SlotMemory {
    Plane plane;
    int channels = 0, packs = 0;
    std::vector<Maps> outputs;      // of each layer
    std::vector<Vectors> kept;  // of each layer, [packs][kept]
    Maps gradient[2];
    Vectors joined;  // [packs][JOINED]
    Vectors opened;  // [packs][gate.kept()]
    Vectors small;
};

// The product of these extents; -1 if one is not positive or the product exceeds the limit for a row, an image or a
// pack's activations, so that every index fits an int and no byte count overflows.
std::int64_t numbers(std::initializer_list<std::int64_t> extents);

// The number of a layer's parameters at each of its `at`.
std::array<std::int64_t, 3> parameters_of(const EsperLayer& layer);

class Seed {
public:
    // Copies the used parameters: for a single pixel, only a kernel's centre.
    Seed(const EsperSeed& seed, SlotMemory& memory, bool training = true);
    void write_back() const;

    void begin_step();  // packs kernels, clears gradients
    void forward(const Maps& h, Maps& out, int packs);
    void backward(const Maps& h, Maps& g, int packs);  // g: the output's gradient, replaced by h's
    void end_step(const EsperRule& rule);

private:
    struct Section {
        int from, to, count, step;
    };
    void take(int from, int count, int step, int& to);
    void add_layer(const EsperLayer& layer);
    void fit_memory(int packs);
    void layer_forward(std::size_t i, const Vec* h, std::ptrdiff_t apart, int first, int count);
    void join(const Vec* h, Vec* out, int pack);
    void open_gate(const Vec* h, int pack);
    void unjoin(const Vec* h, Vec* g, int pack, Vec* gd);
    void layers_backward(const Maps& h, Maps& g, int first, int count);
    void towards_back(const Layer& layer, const Vec* x, const Vec* h, Vec* gd, Vec* g, int pack);
    void excite_back(std::size_t i, const Vec* x, Vec* gd, int pack, bool into);

    const EsperSeed& seed_;
    SlotMemory& memory_;
    std::vector<Layer> layers_;
    std::vector<Section> sections_;
    std::vector<std::vector<float>> packed_, turned_;
    std::vector<float> values_, momentum_, gradient_;
    Vectors sums_;  // [shares][parameters]
    Perceptron gate_;
    bool gated_ = false, learns_ = false;
};

}  // namespace esper
