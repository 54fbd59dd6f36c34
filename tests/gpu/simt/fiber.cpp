#include "gpu/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "the switch between fibers is written for x86-64, like the rest of the program"
#endif

// Saves the callee-saved registers of the System V ABI, swaps the stacks, and returns on the other.
extern "C" void mrSimtSwitch(void** saved, void* next) noexcept;

asm(R"(
    .text
    .globl mrSimtSwitch
    .type mrSimtSwitch, @function
mrSimtSwitch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size mrSimtSwitch, .-mrSimtSwitch
)");

namespace mr::simt {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSavedRegisters = 6;

Fiber* g_running = nullptr;

// The stack that resumes fibers, as the address sanitizer reports it.
struct HostStack {
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    void* shadow = nullptr;
};

HostStack g_host;

#ifdef __SANITIZE_ADDRESS__
void announce(void** shadow, const void* bottom, std::size_t bytes) noexcept
{
    __sanitizer_start_switch_fiber(shadow, bottom, bytes);
}

void arrive(void* shadow, const void** from, std::size_t* bytes) noexcept
{
    __sanitizer_finish_switch_fiber(shadow, from, bytes);
}

void unpoison(const void* memory, std::size_t bytes) noexcept
{
    __asan_unpoison_memory_region(memory, bytes);
}
#else
void announce(void**, const void*, std::size_t) noexcept {}
void arrive(void*, const void**, std::size_t*) noexcept {}
void unpoison(const void*, std::size_t) noexcept {}
#endif

} // namespace

Fiber::Fiber(void (*body)(), unsigned index)
    : m_body(body)
    , m_index(index)
{
    void* memory = mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, kPageBytes, PROT_NONE) != 0)
        std::abort();
    m_memory = static_cast<std::byte*>(memory);
    reset();
}

Fiber::~Fiber()
{
    unpoison(m_memory + kPageBytes, kStackBytes);
    munmap(m_memory, kPageBytes + kStackBytes);
}

void Fiber::reset() noexcept
{
    unpoison(m_memory + kPageBytes, kStackBytes);
    const std::size_t skew = (m_index % 61) * 64;
    auto* top = reinterpret_cast<void**>(m_memory + kPageBytes + kStackBytes - skew);
    *--top = nullptr; // the return address enter() never uses; it also aligns the frame
    *--top = reinterpret_cast<void*>(&Fiber::enter);
    for (std::size_t i = 0; i < kSavedRegisters; ++i)
        *--top = nullptr;
    m_top = top;
    m_shadow = nullptr;
}

void Fiber::resume() noexcept
{
    g_running = this;
    void* const next = m_top;
    announce(&g_host.shadow, m_memory + kPageBytes, kStackBytes);
    mrSimtSwitch(&m_top, next);
    arrive(g_host.shadow, nullptr, nullptr);
}

void Fiber::leave() noexcept
{
    void* const next = m_top;
    announce(&m_shadow, g_host.bottom, g_host.bytes);
    mrSimtSwitch(&m_top, next);
    arrive(m_shadow, &g_host.bottom, &g_host.bytes);
}

void Fiber::enter() noexcept
{
    arrive(nullptr, &g_host.bottom, &g_host.bytes);
    Fiber& self = *g_running;
    while (true) {
        self.m_body();
        self.leave();
    }
}

} // namespace mr::simt
