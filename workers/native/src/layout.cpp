// Sizes of the structs and where their fields lie, as this compiler has them.
#include <cstddef>

#include "api.h"

#define SIZE(type) {#type, std::int32_t(sizeof(type))}
#define AT(type, field) {#type "." #field, std::int32_t(offsetof(type, field))}
#define AT2(type, a, b) AT(type, a), AT(type, b)
#define AT4(type, a, b, c, d) AT2(type, a, b), AT2(type, c, d)

const EsperField* esper_layout() {
    static const EsperField fields[] = {
        SIZE(EsperHost), AT4(EsperHost, in_channels, height, width, base),
        AT4(EsperHost, levels, kernel, pools, classes),
        SIZE(EsperLayer), AT4(EsperLayer, kind, inputs, outputs, size), AT(EsperLayer, at),
        SIZE(EsperSeed), AT4(EsperSeed, values, momentum, layers, n_layers),
        AT4(EsperSeed, width, gate, gate_hidden, join), AT4(EsperSeed, incubating, fossil, trained, alpha),
        SIZE(EsperSplit), AT4(EsperSplit, images, labels, samples, each),
        SIZE(EsperRule), AT4(EsperRule, batch_size, host_lr, seed_lr, momentum),
        AT2(EsperRule, weight_decay, max_grad_norm),
        SIZE(EsperNetwork), AT4(EsperNetwork, values, momentum, mean, var), AT2(EsperNetwork, seeds, width),
        SIZE(EsperTree), AT4(EsperTree, rows, parents, on, real), {"LANES", LANES}, {nullptr, 0},
    };
    return fields;
}
