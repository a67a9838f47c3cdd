// Validates a call before it allocates memory; returns the first error, or ESPER_OK.
#pragma once

#include "host.h"

namespace esper {

EsperStatus valid_host(const EsperHost& host, int border);
EsperStatus valid_split(const EsperWorkspace& w, const EsperSplit& split);
EsperStatus valid_network(const EsperWorkspace& w, const EsperNetwork& network);
EsperStatus valid_order(int batch_size, const std::int64_t* order, std::int64_t samples);
EsperStatus valid_tree(const EsperTree& tree, int levels);

// Runs a function that returns a status, with the kernel's rounding. No exception leaves the library.
template <class Work> std::int32_t guarded(Work&& work) {
    Rounding rounding;
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return ESPER_NO_MEMORY;
    } catch (...) {
        return ESPER_FAILED;
    }
}

}  // namespace esper
