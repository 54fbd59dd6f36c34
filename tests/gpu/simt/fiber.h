// Fiber: a stack of its own that runs one body at a time and can be left in the middle.
//
// The switch is a few instructions: swapcontext() asks the kernel for the signal mask each time,
// which a block with thousands of switches cannot pay.
//
// Threads   All fibers belong to the thread that resumes them.
// Ownership A fiber owns its stack; a page below it traps an overflow.
// Lifetime  A body that was left for good is dropped by reset(); its locals are not destroyed.
// Errors    Aborts if the system has no memory for a stack.

#pragma once

#include <cstddef>

namespace mr::simt {

class Fiber
{
public:
    static constexpr std::size_t kStackBytes = std::size_t{64} << 10;

    // `body` runs once for every first resume() after the construction or its last return.
    // `index` shifts the frames, so that stacks do not meet in the same cache lines.
    Fiber(void (*body)(), unsigned index);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Runs until the body calls leave() or returns.
    void resume() noexcept;

    // Called by a body: back to its resume(). Returns when the fiber is resumed.
    void leave() noexcept;

    // Forgets a body that was left for good.
    void reset() noexcept;

private:
    [[noreturn]] static void enter() noexcept;

    void (*const m_body)();
    const unsigned m_index;
    std::byte* m_memory = nullptr; // guard page, then the stack
    void* m_top = nullptr;         // where the stack pointer of the side that waits was saved
    void* m_shadow = nullptr;      // for the address sanitizer, while the fiber is left
};

} // namespace mr::simt
