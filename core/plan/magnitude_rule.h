// The magnitude rule: how many steps a window of zenflow has (`interval=magnitude`).
//
// ZenFlow's "Zen-auto" lets the host update its columns once their accumulated mean |g| reaches the
// average mean |g| of the urgent columns: then the waiting columns are worth as much as the others.
// Per step, with u and c the mean |g| of an element of the urgent columns and of the complement of
// one weight, that is the smallest n with
//
//     c_1 + ... + c_n  >=  mean of u_1 ... u_n
//
// Its authors' code asks this anew in every step; the plans of a run have windows of one length, so
// here it is asked once, when the run is warm. Gradients of one warm-up are taken to be stationary:
// the left side is n c, and n = ceil(u / c). Both are means of the running energies of the warm-up
// (sums of |g| by column, each step worth 0.9 of the next); the weights of the steps cancel.
// All groups have one window: the smallest n that 99 % of the weights agree to, at most 16, so that
// a weight with no gradient outside a few columns makes no update wait without end.
//
// Left out of that code: a factor 10 k, which is right only for k = 0.1, and an `int()` that lets
// less than 99 % agree.
//
// Source   ZenFlow (arXiv 2505.12242); DeepSpeed edaa722, deepspeed/runtime/zenflow.
// Threads  Pure.
// Units    Steps; means in the unit of gradients, of which only ratios matter.

#pragma once

#include <cstdint>
#include <span>

namespace mr {

inline constexpr int kLongestByMagnitude = 16; // steps of a window

// Mean |g| of the elements of one weight that is split.
struct ColumnMeans {
    double urgent = 0.0;
    double complement = 0.0;
};

// `energies` are sums of |g| by column (cols), `urgent` the device's columns, in any order.
// Precondition: some columns are urgent, and some are not.
ColumnMeans meansOf(std::span<const float> energies, std::span<const std::int32_t> urgent,
    std::int64_t rows) noexcept;

struct IntervalChoice {
    int steps = 1;
    std::int64_t weights = 0; // that were asked
    std::int64_t votes = 0;   // for a window of `steps` or less
    ColumnMeans means;        // over all weights

    // Are 99 % of the weights for it?
    bool isAgreed() const noexcept { return 100 * votes >= 99 * weights; }
};

// By one entry for each weight that is split. Without any there is nothing to wait for: one step.
// If 99 % agree to no window it is the longest.
IntervalChoice chooseInterval(std::span<const ColumnMeans> weights) noexcept;

} // namespace mr
