#include "gpu/simt/machine.h"

#include <cstdlib>
#include <new>

uint3 threadIdx{};
uint3 blockIdx{};
dim3 blockDim;
dim3 gridDim;

// The ends of the section that shared_memory.ld gathers; null in a program linked without it.
extern "C" {
extern unsigned char mrSharedBegin[] __attribute__((weak));
extern unsigned char mrSharedEnd[] __attribute__((weak));
}

namespace mr::simt {

namespace {

constexpr std::align_val_t kSharedAlignment{128};
constexpr int kBlocksWithStaticFill = 4;
constexpr int kNamedWaiters = 4; // in a report

std::string tuple(const uint3& i)
{
    return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) +
           ")";
}

std::string lineOf(const CallSite& where)
{
    const std::string_view path = where.fileName();
    return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(where.line());
}

// Literals: mostly one pointer.
bool sameText(const char* a, const char* b)
{
    return a == b || std::string_view(a) == b;
}

bool sameLine(const CallSite& a, const CallSite& b)
{
    return a.line() == b.line() && sameText(a.fileName(), b.fileName());
}

bool sameMeeting(const Meeting& a, const Meeting& b)
{
    return a.mask == b.mask && sameText(a.what, b.what) && sameLine(a.where, b.where);
}

// Bytes 0xFF are NaN and -1: a block's read before its write shows. All static arrays of all
// kernels lie together, so only the first blocks of a grid pay for it. Not instrumented: the
// bytes between the arrays belong to the address sanitizer.
__attribute__((no_sanitize("address"))) void fillStaticArrays()
{
    for (unsigned char* at = mrSharedBegin; at < mrSharedEnd; ++at)
        *at = 0xFF;
}

bool has(unsigned mask, int lane)
{
    return (mask >> lane & 1U) != 0;
}

} // namespace

Machine& machine()
{
    static Machine one{Schedule{}};
    return one;
}

void Machine::AlignedDelete::operator()(unsigned char* memory) const noexcept
{
    ::operator delete[](memory, kSharedAlignment);
}

void Machine::setSchedule(const Schedule& schedule)
{
    m_schedule = schedule;
    m_random.seed(schedule.seed);
}

void Machine::prepare(const Launch& launch)
{
    m_launch = launch;
    m_fault.clear();
    m_blocks = 0;
    blockDim = launch.block;
    gridDim = launch.grid;
    // Exactly this many bytes, so that the address sanitizer sees an access past them.
    m_shared.reset(
        static_cast<unsigned char*>(::operator new[](launch.sharedBytes, kSharedAlignment)));
    const dim3& block = launch.block;
    m_threads.resize(std::size_t{block.x} * block.y * block.z);
    auto thread = m_threads.begin();
    for (unsigned z = 0; z < block.z; ++z)
        for (unsigned y = 0; y < block.y; ++y)
            for (unsigned x = 0; x < block.x; ++x)
                (thread++)->index = {x, y, z};
}

bool Machine::runBlock(uint3 block)
{
    blockIdx = block;
    std::memset(m_shared.get(), 0xFF, m_launch.sharedBytes);
    if (m_blocks++ < kBlocksWithStaticFill)
        fillStaticArrays();
    for (Thread& thread : m_threads) {
        thread.state = Thread::State::Fresh;
        thread.copies.clear();
        thread.closedGroups = 0;
    }
    m_left = static_cast<int>(m_threads.size());
    m_atBarrier = 0;
    m_inWarp = {};
    m_ready.fill(m_left);
    while (m_left > 0 && m_fault.empty()) {
        const int thread = pick();
        if (thread >= 0)
            resume(thread);
        else
            m_fault = "block " + tuple(blockIdx) + ": " +
                      (m_atBarrier > 0 ? "divergent barrier: " : "deadlock: ") + waitingThreads();
    }
    if (!m_fault.empty())
        dropFibers();
    return m_fault.empty();
}

int Machine::pick() noexcept
{
    if (m_schedule.order == Order::Ascending)
        return m_ready.next(0);
    if (m_schedule.order == Order::Descending)
        return m_ready.last();
    const int from = static_cast<int>(m_random() % m_threads.size());
    const int next = m_ready.next(from);
    return next >= 0 ? next : m_ready.next(0);
}

void Machine::resume(int thread)
{
    m_current = thread;
    Thread& t = current();
    if (!t.fiber) {
        if (m_idle.empty()) {
            m_fibers.push_back(std::make_unique<Fiber>(
                [] { machine().runCurrent(); }, static_cast<unsigned>(m_fibers.size())));
            m_idle.push_back(m_fibers.back().get());
        }
        t.fiber = m_idle.back();
        m_idle.pop_back();
    }
    t.state = Thread::State::Running;
    threadIdx = t.index;
    t.fiber->resume();
    if (t.state == Thread::State::Gone) {
        m_idle.push_back(t.fiber);
        t.fiber = nullptr;
    }
}

void Machine::runCurrent()
{
    m_launch.runThread(m_launch.call);
    current().state = Thread::State::Gone;
    m_ready.remove(m_current);
    --m_left;
}

void Machine::stop(std::string&& what)
{
    what.insert(0, place(m_current) + ": ");
    m_fault = what;
    std::string().swap(what);
    current().fiber->leave();
    std::abort(); // nobody resumes a fiber of a block that failed
}

void Machine::waitForBlock(const CallSite& where)
{
    Thread& thread = current();
    thread.where = &where;
    thread.state = Thread::State::AtBarrier;
    m_ready.remove(m_current);
    ++m_atBarrier;
    if (m_atBarrier == static_cast<int>(m_threads.size()))
        openBarrier();
    thread.fiber->leave(); // the last one as well: the schedule chooses the first to go on
}

void Machine::openBarrier()
{
    const CallSite& here = *current().where;
    for (const Thread& other : m_threads) {
        if (sameLine(*other.where, here))
            continue;
        std::string text = "divergent barrier: this thread is at " + lineOf(here) + ", thread " +
                           tuple(other.index) + " at " + lineOf(*other.where);
        stop(std::move(text));
    }
    for (Thread& thread : m_threads)
        thread.state = Thread::State::Running;
    m_atBarrier = 0;
    m_ready.fill(static_cast<int>(m_threads.size()));
}

void Machine::waitForWarp(const Meeting& meeting, void* operand, Apply apply)
{
    const int lane = m_current % kLanes;
    const int first = m_current - lane;
    if (!has(meeting.mask, lane))
        stop(std::string(meeting.what) + ": the lane is not in its own mask");
    Thread& thread = current();
    thread.where = &meeting.where;
    thread.meeting = &meeting;
    thread.operand = operand;
    thread.state = Thread::State::InWarp;
    m_inWarp[static_cast<std::size_t>(first / kLanes)] |= 1U << lane;
    m_ready.remove(m_current);
    if (arrived(first, meeting))
        finish(first, meeting, apply);
    thread.fiber->leave();
}

bool Machine::arrived(int firstOfWarp, const Meeting& meeting) const
{
    if ((m_inWarp[static_cast<std::size_t>(firstOfWarp / kLanes)] & meeting.mask) != meeting.mask)
        return false;
    for (unsigned left = meeting.mask; left != 0; left &= left - 1) {
        const auto i = static_cast<std::size_t>(firstOfWarp + std::countr_zero(left));
        if (!sameMeeting(*m_threads[i].meeting, meeting))
            return false;
    }
    return true;
}

void Machine::finish(int firstOfWarp, const Meeting& meeting, Apply apply)
{
    void* operands[kLanes] = {};
    for (unsigned left = meeting.mask; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        Thread& thread = m_threads[static_cast<std::size_t>(firstOfWarp + lane)];
        operands[lane] = thread.operand;
        thread.state = Thread::State::Running;
        m_ready.add(firstOfWarp + lane);
    }
    m_inWarp[static_cast<std::size_t>(firstOfWarp / kLanes)] &= ~meeting.mask;
    apply(operands, meeting.mask);
}

void Machine::dropFibers() noexcept
{
    for (Thread& thread : m_threads) {
        if (!thread.fiber)
            continue;
        thread.fiber->reset();
        m_idle.push_back(thread.fiber);
        thread.fiber = nullptr;
    }
}

std::string Machine::place(int thread) const
{
    return "block " + tuple(blockIdx) + ", thread " +
           tuple(m_threads[static_cast<std::size_t>(thread)].index) + " (warp " +
           std::to_string(thread / kLanes) + ", lane " + std::to_string(thread % kLanes) + ")";
}

std::string Machine::waitingThreads() const
{
    std::string text;
    int named = 0;
    for (std::size_t i = 0; i < m_threads.size(); ++i) {
        const Thread& t = m_threads[i];
        // One of those that wait alike is enough.
        if (t.state == Thread::State::Gone ||
            (i > 0 && t.state == m_threads[i - 1].state && m_threads[i - 1].where &&
                sameLine(*t.where, *m_threads[i - 1].where)))
            continue;
        if (named++ == kNamedWaiters)
            return text + " ...";
        const bool inWarp = t.state == Thread::State::InWarp;
        text += "thread " + tuple(t.index) + " (warp " + std::to_string(i / kLanes) + ", lane " +
                std::to_string(i % kLanes) + ") waits at " +
                (inWarp ? t.meeting->what : "__syncthreads") + " " + lineOf(*t.where) + "; ";
    }
    return text + std::to_string(m_left) + " of " + std::to_string(m_threads.size()) +
           " threads are left";
}

} // namespace mr::simt
