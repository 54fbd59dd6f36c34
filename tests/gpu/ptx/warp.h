// A warp that runs PTX: its registers as lanes, where each lane is, and decoded instructions.
//
// A register is an array of 32 lanes: 64 bytes of U16, 128 of U32, 256 of U64; a predicate is one
// mask of 32 bits. Immediates, special registers and addresses of variables are registers that
// are filled when the warp starts, so that every operand is an offset.
//
// Threads  One at a time; a block is run by one thread of the host.
// Source   PTX ISA 9.0, chapters 4 to 6.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mr::ptx {

inline constexpr int kLanes = 32;
using Mask = std::uint32_t;
inline constexpr Mask kAllLanes = 0xffffffffU;

class Block;
struct Warp;
struct Step;

using Execute = void (*)(Warp& warp, const Step& step, Mask lanes);

enum class Control : std::uint8_t {
    None,
    Branch,   // to `target`, the lanes whose guard holds
    Exit,     // ends these lanes
    Barrier,  // waits for the block
    Together, // waits for all lanes of the mask in slot `mask`
};

// A decoded instruction. Slots are offsets into Warp::registers.
struct Step {
    Execute execute = nullptr;
    Control control = Control::None;
    bool isGuarded = false;
    bool guardNegated = false;
    std::uint8_t count = 1;        // elements of a vector
    std::uint8_t bytes = 0;        // of an element in memory, or of a copy
    std::uint32_t guard = 0;       // slot
    std::uint32_t mask = 0;        // slot of the lanes that meet, of Together
    std::uint32_t target = 0;      // index of a step
    bool isWideAddress = true;     // 64 bits
    std::int64_t offset = 0;       // of an address
    std::int64_t secondOffset = 0; // of a copy's source
    std::uint32_t index = 0;       // of the instruction in its entry
    std::array<std::uint32_t, 15> slots = {};

    friend bool operator==(const Step&, const Step&) = default;
};

struct Program {
    struct Constant {
        std::uint32_t slot = 0;
        int bytes = 0;
        std::uint64_t bits = 0;

        friend bool operator==(const Constant&, const Constant&) = default;
    };
    struct Parameter {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };
    enum class Special : std::uint8_t {
        TidX,
        TidY,
        TidZ,
        NtidX,
        NtidY,
        NtidZ,
        CtaidX,
        CtaidY,
        CtaidZ,
        NctaidX,
        NctaidY,
        NctaidZ,
        LaneId,
        WarpId,
        Count
    };

    std::string name;
    std::string target;
    std::vector<Step> steps;
    std::vector<int> lines;         // of the text, by step
    std::vector<std::string> texts; // the instruction's name, by step
    std::vector<Constant> constants;
    std::array<std::uint32_t, static_cast<std::size_t>(Special::Count)> specials = {}; // 0: unused
    std::size_t registerBytes = 0;
    std::vector<Parameter> parameters;
    std::size_t parameterBytes = 0;
    std::size_t sharedBytes = 0; // static; dynamic memory begins there
    std::size_t localBytes = 0;  // a thread
    int maxThreads = 0;

    // Does what the other does, for whatever target it was compiled.
    bool hasSameCode(const Program& other) const
    {
        return steps == other.steps && constants == other.constants && specials == other.specials &&
               sharedBytes == other.sharedBytes && localBytes == other.localBytes;
    }
};

struct Warp {
    Block* block = nullptr;
    const Program* program = nullptr;
    std::vector<std::byte> memory;             // of the registers
    std::byte* registers = nullptr;            // aligned to 64 bytes
    std::array<std::uint32_t, kLanes> at = {}; // the next step of each lane
    Mask alive = 0;                            // has not left
    Mask waiting = 0;                          // at a barrier
    Mask meeting = 0;        // at an instruction that other lanes have not reached
    int number = 0;          // in its block
    std::uint32_t phase = 0; // meetings of the whole warp so far

    template <typename T>
    T* lanes(std::uint32_t slot)
    {
        return reinterpret_cast<T*>(registers + slot);
    }
    Mask& predicate(std::uint32_t slot) { return *reinterpret_cast<Mask*>(registers + slot); }
};

// Calls f(lane) for the lanes of a mask, ascending.
template <typename F>
void forLanes(Mask lanes, F f)
{
    if (lanes == kAllLanes) {
        for (int lane = 0; lane < kLanes; ++lane)
            f(lane);
        return;
    }
    for (; lanes != 0; lanes &= lanes - 1)
        f(std::countr_zero(lanes));
}

} // namespace mr::ptx
