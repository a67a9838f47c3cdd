// The interface for callers: plain structs, pointers into the caller's arrays, and five functions. Every size, index
// and label is validated before memory is allocated (valid.cpp); arrays must be as large as the structs say.
// workers/native/binding.py declares the same structs and checks with `esper_layout` that both agree.
#pragma once

#include <cstdint>

extern "C" {

// A host: `levels` times convolution, batch norm, 2x2 max-pool in the first `pools` of them, ReLU; then a linear layer
// on pooled features. Level i has `base` << i channels.
struct EsperHost {
    std::int32_t in_channels, height, width, base, levels, kernel, pools, classes;
};

enum EsperLayerKind : std::int32_t { ESPER_CONV, ESPER_DEPTHWISE, ESPER_NORM, ESPER_RELU, ESPER_TOWARDS, ESPER_EXCITE };

// A layer of a seed. `at`: offsets of its parameters in the seed's row; conv: kernel; norm: gain, bias; towards:
// scale; excite: squeeze, excite, bias. `size`: taps of a kernel, groups of a norm, hidden units of excite.
struct EsperLayer {
    std::int32_t kind, inputs, outputs, size, at[3];
};

enum EsperJoin : std::int32_t { ESPER_ADD, ESPER_MULTIPLY, ESPER_GATE };

// A seed; if `layers` is null, an empty slot. An incubating seed learns but does not affect the output.
struct EsperSeed {
    float* values;    // a row of parameters
    float* momentum;  // of the same row
    const EsperLayer* layers;
    std::int32_t n_layers, width;  // width: parameters in the row
    std::int32_t gate, gate_hidden;  // offset of the gate's parameters in the row; its hidden units
    std::int32_t join, incubating, fossil, trained;
    float alpha;
};

struct EsperSplit {
    const float* images;         // [samples][height][width][channels]
    const std::int64_t* labels;  // [samples]
    std::int64_t samples, each;  // each: numbers per image
};

struct EsperRule {
    std::int32_t batch_size;
    float host_lr, seed_lr, momentum, weight_decay, max_grad_norm;
};

struct EsperNetwork {
    float* values;    // the host's row of parameters: per level kernel, gain, bias; head's weight and bias
    float* momentum;  // of the same row
    float* const* mean;  // [levels] running moments of batch norm
    float* const* var;
    const EsperSeed* seeds;  // [levels]
    std::int32_t width;      // parameters in the host's row
};

// The configuration tree of one network. Level b has `rows[b]` rows; row r continues row parents[b][r] of the level
// before, with the level's seed on or off. The last level's rows are the configurations.
struct EsperTree {
    const std::int32_t* rows;
    const std::int64_t* const* parents;
    const std::uint8_t* const* on;
    std::int32_t real;  // the row whose loss is measured
};

struct EsperWorkspace;

// The error of a call; binding.py has a sentence for each.
enum EsperStatus : std::int32_t {
    ESPER_OK, ESPER_NO_MEMORY, ESPER_FAILED, ESPER_SIZE, ESPER_KERNEL, ESPER_POOLS, ESPER_ROW, ESPER_LAYER, ESPER_CHAIN,
    ESPER_BATCH, ESPER_IMAGE, ESPER_ORDER, ESPER_LABEL, ESPER_TREE
};

// The offset of a field in its struct; for a struct itself, its size in bytes.
struct EsperField {
    const char* name;
    std::int32_t at;
};

#define ESPER_EXPORT __attribute__((visibility("default")))

// Functions that can fail return EsperStatus and write results only on ESPER_OK.

// Allocates memory for networks of one shape, used by one thread at a time. `border`: half of the widest kernel.
ESPER_EXPORT std::int32_t esper_open(const EsperHost* host, std::int32_t border, EsperWorkspace** opened);
ESPER_EXPORT void esper_close(EsperWorkspace* workspace);

// Trains one epoch over `order` [samples]. measured: sum of losses, number correct, both in training mode.
ESPER_EXPORT std::int32_t esper_train(
    EsperWorkspace* workspace, const EsperRule* rule, const EsperNetwork* network, const EsperSplit* split,
    const std::int64_t* order, double* measured
);

// Evaluates a whole split. right: number correct [rows of the last level]; loss: the real row's, summed over samples.
ESPER_EXPORT std::int32_t esper_measure(
    EsperWorkspace* workspace, const EsperNetwork* network, const EsperSplit* split, const EsperTree* tree,
    std::int64_t* right, double* loss
);

// Sizes and field offsets of the structs above, by name, and LANES; the last name is null.
ESPER_EXPORT const EsperField* esper_layout();
}
