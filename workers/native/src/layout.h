// Layout of activations: [pack of LANES samples][channel][row][column], every element a vector, in planes with a border
// of zeros that convolutions read. Borders are never written, so they stay zero in a buffer used for one plane shape.
#pragma once

#include "lanes.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace esper {

struct Plane {
    int height = 0, width = 0, border = 0;

    bool single() const { return height == 1 && width == 1; }
    int pixels() const { return height * width; }
    std::ptrdiff_t row() const { return width + 2 * border; }
    std::ptrdiff_t size() const { return row() * (height + 2 * border); }
    std::ptrdiff_t at(int y, int x) const { return (y + border) * row() + x + border; }
};

inline Plane plane_of(int height, int width, int border) {
    bool single = height == 1 && width == 1;  // for a single pixel, only the kernel's centre matters
    return Plane{height, width, single ? 0 : border};
}

inline int packs_of(int samples) { return (samples + LANES - 1) / LANES; }

// Aligned memory, initially zero.
class Vectors {
public:
    Vectors() = default;
    explicit Vectors(std::size_t count) { allocate(count); }
    Vectors(const Vectors&) = delete;
    Vectors& operator=(const Vectors&) = delete;
    Vectors(Vectors&& other) noexcept { *this = std::move(other); }
    Vectors& operator=(Vectors&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~Vectors() { std::free(data_); }

    // Grows to at least `count`; growing discards the contents.
    void fit(std::size_t count) {
        if (count > count_) {
            std::free(data_);
            data_ = nullptr;
            count_ = 0;
            allocate(count);
        }
    }
    void clear() {
        if (count_ > 0) std::memset((void*)data_, 0, count_ * sizeof(Vec));
    }
    Vec* data() { return data_; }
    const Vec* data() const { return data_; }
    Vec& operator[](std::size_t i) { return data_[i]; }
    const Vec& operator[](std::size_t i) const { return data_[i]; }

private:
    void allocate(std::size_t count) {
        std::size_t bytes = (count * sizeof(Vec) + 63) / 64 * 64 + 64;
        data_ = (Vec*)std::aligned_alloc(64, bytes);
        if (data_ == nullptr) throw std::bad_alloc();
        std::memset((void*)data_, 0, bytes);
        count_ = count;
    }
    Vec* data_ = nullptr;
    std::size_t count_ = 0;
};

// Activations of several packs. Tiles at an odd edge read a little beyond the last plane: `slack`.
struct Maps {
    Vectors memory;
    Plane plane;
    std::ptrdiff_t stride = 0;  // between packs

    void fit(Plane of, int channels, int packs) {
        plane = of;
        stride = of.size() * channels;
        memory.fit(std::size_t(stride) * packs + slack(of));
    }
    static std::size_t slack(Plane of) { return std::size_t(4 * of.row() + 16); }
    Vec* pack(int p) { return memory.data() + p * stride; }
    const Vec* pack(int p) const { return memory.data() + p * stride; }
};

// Returns how many of `packs` to process together so that each step's output, `size` vectors per pack, stays in the
// cache until the next step reads it. No sum depends on it.
inline int packs_at_once(std::ptrdiff_t size) {
    constexpr std::ptrdiff_t NEAR = 192 << 10;  // bytes
    const std::ptrdiff_t packs = NEAR / (size * std::ptrdiff_t(sizeof(Vec)));
    return packs > 1 ? int(packs) : 1;
}

// The pixels of the 2x2 tile at (y, x) inside the plane: fewer than four at an odd edge. `q`: the plane's first vector.
INLINE void store(Vec* q, Plane plane, int y, int x, Vec a, Vec b, Vec c, Vec d) {
    const bool right = x + 1 < plane.width, below = y + 1 < plane.height;
    q += plane.at(y, x);
    q[0] = a;
    if (right) q[1] = b;
    if (below) q[plane.row()] = c;
    if (right && below) q[plane.row() + 1] = d;
}

// Calls `work(offset)` for every pixel of every channel; `offset` is relative to the pack's first vector.
template <class Work> INLINE void each_pixel(Plane plane, int channels, Work&& work) {
    if (plane.single()) {
        for (std::ptrdiff_t c = 0; c < channels; c++) work(c);
        return;
    }
    const int height = plane.height, width = plane.width;
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < height; y++) {
            const std::ptrdiff_t start = c * plane.size() + plane.at(y, 0);
            for (int x = 0; x < width; x++) work(start + x);
        }
}

// Sums over every pixel of every channel; `add(offset, sum)` returns `sum` plus the pixel's term. Channels are summed
// apart: in one chain of all terms, rounding would exceed that of torch where they cancel.
template <class Add> INLINE Vec summed(Plane plane, int channels, Add&& add) {
    Vec whole = {};
    for (int c = 0; c < channels; c++) {
        Vec sum = {};
        each_pixel(plane, 1, [&](std::ptrdiff_t at) { sum = add(c * plane.size() + at, sum); });
        whole += sum;
    }
    return whole;
}

}  // namespace esper
