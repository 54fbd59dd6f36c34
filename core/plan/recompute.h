// Recompute: the activations of a block that backward computes again instead of reading them.
//
// Every value gives the same bits: an op that runs again reads the same tensors.
//
// Threads  Pure.

#pragma once

#include "core/plan/optimizer.h"

#include <millrace/run_spec.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mr {

// Each value holds less than the one before it and computes more.
enum class Recompute : std::uint8_t {
    None,  // forward keeps all that backward reads
    Cheap, // all but the outputs of norms and of the MLP's activation function
    Block, // the block's input alone
};

inline constexpr std::array kRecomputeKinds = {Recompute::None, Recompute::Cheap, Recompute::Block};

constexpr RecomputeChoice choiceOf(Recompute how) noexcept
{
    switch (how) {
    case Recompute::None:
        return RecomputeChoice::None;
    case Recompute::Cheap:
        return RecomputeChoice::Cheap;
    case Recompute::Block:
        break;
    }
    return RecomputeChoice::Block;
}

// May forward keep nothing of a block but its input? So it is with inputs that wait in 8 bits,
// where backward, which writes over what it reads, comes twice, and where there is none.
inline bool keepsInputsAlone(
    KeepInputs inputs, Optimizer optimizer, const std::map<std::string, std::string>& options)
{
    return inputs == KeepInputs::Int8 || isForwardOnly(optimizer) || asksTwoPasses(options);
}

// `isBlock`: there is no choice (keepsInputsAlone()).
constexpr RecomputeChoice recomputeOf(RecomputeChoice asked, bool isBlock) noexcept
{
    return asked == RecomputeChoice::Auto && isBlock ? RecomputeChoice::Block : asked;
}

// Does the setting leave this choice to the program, or ask for it?
constexpr bool isAllowed(Recompute how, RecomputeChoice asked) noexcept
{
    return asked == RecomputeChoice::Auto || asked == choiceOf(how);
}

// The first one that the setting allows.
constexpr Recompute leastOf(RecomputeChoice asked) noexcept
{
    for (const Recompute how : kRecomputeKinds)
        if (isAllowed(how, asked))
            return how;
    return Recompute::Block;
}

inline std::string_view name(Recompute how) noexcept
{
    return name(choiceOf(how));
}

} // namespace mr
