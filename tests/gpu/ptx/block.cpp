#include "gpu/ptx/block.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

constexpr std::size_t kAlignment = 256; // of shared memory and registers
constexpr std::uint32_t kNowhere = 0xffffffffU;
constexpr std::byte kGarbage{0xee}; // memory and registers before anybody writes them

std::byte* aligned(std::vector<std::byte>& memory, std::size_t bytes, std::byte fill)
{
    memory.assign(bytes + kAlignment, fill);
    void* begin = memory.data();
    std::size_t space = memory.size();
    return static_cast<std::byte*>(std::align(kAlignment, bytes, begin, space));
}

template <typename T>
void fillLanes(Warp& warp, std::uint32_t slot, T value)
{
    std::fill_n(warp.lanes<T>(slot), kLanes, value);
}

// The lanes of `among` whose next step is `at`.
Mask lanesAt(const Warp& warp, Mask among, std::uint32_t at)
{
    Mask found = 0;
    forLanes(among, [&](int lane) {
        found |= static_cast<Mask>(warp.at[static_cast<std::size_t>(lane)] == at) << lane;
    });
    return found;
}

std::uint32_t furthestBehind(const Warp& warp, Mask among)
{
    std::uint32_t at = kNowhere;
    forLanes(among, [&](int lane) { at = std::min(at, warp.at[static_cast<std::size_t>(lane)]); });
    return at;
}

void setNext(Warp& warp, Mask lanes, std::uint32_t at)
{
    forLanes(lanes, [&](int lane) { warp.at[static_cast<std::size_t>(lane)] = at; });
}

} // namespace

Block::Block(const Launch& launch)
    : m_launch(launch)
    , m_random(launch.freedom.seed)
{
    const std::uint64_t threads = launch.block.count();
    m_warps.resize((threads + kLanes - 1) / kLanes);
    m_threads.resize(threads);
    m_sharedBytes = launch.program->sharedBytes + launch.dynamicShared;
    for (Warp& warp : m_warps) {
        warp.block = this;
        warp.program = launch.program;
        warp.registers = aligned(warp.memory, launch.program->registerBytes, kGarbage);
    }
}

void Block::begin(Dims index)
{
    m_barriers = 0;
    m_status = {};
    m_number = index.x + m_launch.grid.x * (index.y + m_launch.grid.y * index.z);
    m_shared = aligned(m_sharedMemory, m_sharedBytes, kGarbage);
    m_sharedShadow = Shadow(m_sharedBytes, false);
    m_local.assign(m_launch.program->localBytes * m_threads.size(), kGarbage);
    m_localShadow = Shadow(m_local.size(), false);
    std::ranges::fill(m_threads, Thread());
    for (std::size_t w = 0; w < m_warps.size(); ++w) {
        m_warps[w].number = static_cast<int>(w);
        fill(m_warps[w], index);
    }
}

void Block::fill(Warp& warp, Dims index)
{
    using Special = Program::Special;
    const Program& program = *m_launch.program;
    std::fill_n(warp.registers, program.registerBytes, kGarbage);
    for (const Program::Constant& constant : program.constants) {
        if (constant.bytes == 0)
            warp.predicate(constant.slot) = constant.bits != 0 ? kAllLanes : 0;
        else if (constant.bytes == 2)
            fillLanes(warp, constant.slot, static_cast<std::uint16_t>(constant.bits));
        else if (constant.bytes == 4)
            fillLanes(warp, constant.slot, static_cast<std::uint32_t>(constant.bits));
        else
            fillLanes(warp, constant.slot, constant.bits);
    }
    const Dims& block = m_launch.block;
    const auto set = [&](Special what, auto value) {
        const std::uint32_t slot = program.specials[static_cast<std::size_t>(what)];
        for (int lane = 0; slot != 0 && lane < kLanes; ++lane)
            warp.lanes<std::uint32_t>(slot)[lane] = static_cast<std::uint32_t>(value(lane));
    };
    const auto constant = [](std::uint32_t value) { return [value](int) { return value; }; };
    const auto thread = [&](int lane) {
        return static_cast<std::uint32_t>(warp.number * kLanes + lane);
    };
    set(Special::TidX, [&](int lane) { return thread(lane) % block.x; });
    set(Special::TidY, [&](int lane) { return thread(lane) / block.x % block.y; });
    set(Special::TidZ, [&](int lane) { return thread(lane) / block.x / block.y; });
    set(Special::NtidX, constant(block.x));
    set(Special::NtidY, constant(block.y));
    set(Special::NtidZ, constant(block.z));
    set(Special::CtaidX, constant(index.x));
    set(Special::CtaidY, constant(index.y));
    set(Special::CtaidZ, constant(index.z));
    set(Special::NctaidX, constant(m_launch.grid.x));
    set(Special::NctaidY, constant(m_launch.grid.y));
    set(Special::NctaidZ, constant(m_launch.grid.z));
    set(Special::LaneId, [](int lane) { return lane; });
    set(Special::WarpId, constant(static_cast<std::uint32_t>(warp.number)));
    warp.at = {};
    warp.waiting = 0;
    warp.meeting = 0;
    warp.phase = 0;
    const std::size_t left = m_threads.size() - static_cast<std::size_t>(warp.number) * kLanes;
    warp.alive = left >= kLanes ? kAllLanes : (1U << left) - 1U;
}

Status Block::run(Dims index)
{
    begin(index);
    std::vector<std::size_t> ready;
    while (m_status.ok()) {
        ready.clear();
        bool isAlive = false;
        for (std::size_t w = 0; w < m_warps.size(); ++w) {
            const Warp& warp = m_warps[w];
            isAlive = isAlive || warp.alive != 0;
            if ((warp.alive & ~warp.waiting & ~warp.meeting) != 0)
                ready.push_back(w);
        }
        if (!isAlive)
            return {};
        if (ready.empty()) {
            if (!barrier())
                return m_status;
            continue;
        }
        Warp& warp = m_warps[ready[m_random() % ready.size()]];
        const std::uint64_t most = 16 + m_random() % 512;
        std::uint64_t left = most;
        runWarp(warp, left);
        count(warp, most - left);
    }
    return m_status;
}

void Block::count(const Warp& warp, std::uint64_t steps)
{
    m_steps += steps;
    if (m_launch.stepLimit == 0 || m_steps <= m_launch.stepLimit)
        return;
    const Mask left = warp.alive;
    const int lane = left == 0 ? 0 : std::countr_zero(left);
    fail(warp, m_launch.program->steps[warp.at[static_cast<std::size_t>(lane)]], lane,
        "is still on its way after all the steps that the launch may take");
}

// Runs the lanes that are furthest behind until they meet others, go apart, or wait. Takes what it
// ran from `steps`.
void Block::runWarp(Warp& warp, std::uint64_t& steps)
{
    const std::vector<Step>& program = m_launch.program->steps;
    while (m_status.ok() && steps > 0) {
        const Mask ready = warp.alive & ~warp.waiting & ~warp.meeting;
        if (ready == 0)
            return;
        std::uint32_t at = furthestBehind(warp, ready);
        const Mask group = lanesAt(warp, ready, at);
        const std::uint32_t others =
            group == ready ? kNowhere : furthestBehind(warp, ready & ~group);
        bool isTogether = true;
        while (isTogether && m_status.ok() && steps > 0 && at < others) {
            --steps;
            const Step& step = program[at];
            Mask on = group;
            if (step.isGuarded) {
                const Mask p = warp.predicate(step.guard);
                on &= step.guardNegated ? ~p : p;
            }
            if (m_launch.executed)
                ++(*m_launch.executed)[at];
            if (StepCount* const count = counted(step)) {
                const Mask part = step.control == Control::None ? on : group;
                ++count->times;
                count->lanes += static_cast<std::uint64_t>(std::popcount(part));
            }
            if (step.control == Control::None) {
                if (on != 0)
                    step.execute(warp, step, on);
                ++at;
            } else
                isTogether = control(warp, step, group, on, at);
        }
        if (isTogether)
            setNext(warp, group, at);
    }
}

// Steps that change which lanes run, or wait. `at` follows a group that stays together; false: the
// lanes' own places are set.
bool Block::control(Warp& warp, const Step& step, Mask group, Mask on, std::uint32_t& at)
{
    const Mask rest = group & ~on;
    if (step.control == Control::Branch) {
        if (on == 0 || rest == 0) {
            at = on == 0 ? at + 1 : step.target;
            return true;
        }
        setNext(warp, rest, at + 1);
        setNext(warp, on, step.target);
        return false;
    }
    if (step.control == Control::Exit) {
        warp.alive &= ~on;
        setNext(warp, rest, at + 1);
        return false;
    }
    if (rest != 0) {
        fail(warp, step, std::countr_zero(rest),
            "a barrier or meeting under a condition that differs");
        return false;
    }
    setNext(warp, group, at);
    if (step.control == Control::Barrier) {
        warp.waiting |= group;
        return false;
    }
    return meet(warp, step, group, at);
}

// Runs an instruction of several lanes when all of its mask have come.
bool Block::meet(Warp& warp, const Step& step, Mask group, std::uint32_t& at)
{
    const Mask arrived = group | lanesAt(warp, warp.meeting, at);
    const Mask asked = warp.lanes<std::uint32_t>(step.mask)[std::countr_zero(group)];
    if ((asked & ~warp.alive) != 0) {
        fail(warp, step, std::countr_zero(asked & ~warp.alive), "waits for a lane that has left");
        return false;
    }
    if ((group & ~asked) != 0) {
        fail(warp, step, std::countr_zero(group & ~asked),
            "is called by a lane that its mask lacks");
        return false;
    }
    if ((arrived & asked) != asked) {
        warp.meeting |= group;
        return false;
    }
    warp.meeting &= ~asked;
    if (asked == warp.alive)
        ++warp.phase;
    if (step.execute)
        step.execute(warp, step, asked);
    setNext(warp, asked, at + 1);
    if (asked != group)
        return false;
    ++at;
    return true;
}

// Nobody can go on: lets all go on if all wait at one barrier.
bool Block::barrier()
{
    for (Warp& warp : m_warps)
        if (warp.meeting != 0) {
            const int lane = std::countr_zero(warp.meeting);
            fail(warp, m_launch.program->steps[warp.at[static_cast<std::size_t>(lane)]], lane,
                "waits for a lane that has left or waits elsewhere");
            return false;
        }
    std::uint32_t at = kNowhere;
    for (Warp& warp : m_warps) {
        const std::size_t left = m_threads.size() - static_cast<std::size_t>(warp.number) * kLanes;
        const Mask all = left >= kLanes ? kAllLanes : (1U << left) - 1U;
        const Mask missing = all & ~warp.waiting;
        const Step& step = m_launch.program->steps[0];
        if (missing != 0) {
            fail(warp, step, std::countr_zero(missing),
                "never comes to a barrier where others wait");
            return false;
        }
        const std::uint32_t here = warp.at[0];
        if (at == kNowhere)
            at = here;
        if (lanesAt(warp, all, at) != all) {
            fail(warp, m_launch.program->steps[here], 0, "waits at another barrier than others do");
            return false;
        }
    }
    ++m_barriers;
    for (Warp& warp : m_warps) {
        setNext(warp, warp.waiting, at + 1);
        warp.waiting = 0;
    }
    return true;
}

Moment Block::momentOf(const Warp& warp, int lane) const
{
    return {
        m_number, m_barriers, warp.phase, static_cast<std::uint32_t>(warp.number * kLanes + lane)};
}

std::byte* Block::global(const Warp& warp, const Step& step, int lane, std::uint64_t address,
    std::size_t bytes, bool writes)
{
    std::string wrong;
    std::byte* const at =
        m_launch.memory->reach(address, bytes, writes, momentOf(warp, lane), wrong);
    if (!at)
        fail(warp, step, lane, wrong);
    return at;
}

std::byte* Block::shared(const Warp& warp, const Step& step, int lane, std::uint64_t address,
    std::size_t bytes, bool writes)
{
    std::string wrong;
    if ((address & (bytes - 1)) != 0) // a power of two
        wrong = fmt::format("a shared address that is no multiple of {}", bytes);
    else if (address + bytes > m_sharedBytes)
        wrong = fmt::format("byte {} of shared memory, which has {}", address, m_sharedBytes);
    else if (writes ? m_sharedShadow.write(address, bytes, momentOf(warp, lane), wrong)
                    : m_sharedShadow.read(address, bytes, momentOf(warp, lane), wrong))
        return m_shared + address;
    fail(warp, step, lane, fmt::format("shared memory at {}: {}", address, wrong));
    return nullptr;
}

std::byte* Block::local(const Warp& warp, const Step& step, int lane, std::uint64_t address,
    std::size_t bytes, bool writes)
{
    const std::size_t each = m_launch.program->localBytes;
    if (address % bytes != 0 || address + bytes > each) {
        fail(warp, step, lane, fmt::format("byte {} of local memory, which has {}", address, each));
        return nullptr;
    }
    const Moment who = momentOf(warp, lane);
    const std::size_t at = who.thread * each + address;
    std::string wrong;
    if (writes ? m_localShadow.write(at, bytes, who, wrong)
               : m_localShadow.read(at, bytes, who, wrong))
        return m_local.data() + at;
    fail(warp, step, lane, fmt::format("local memory at {}: {}", address, wrong));
    return nullptr;
}

const std::byte* Block::parameter(
    const Warp& warp, const Step& step, int lane, std::uint64_t address, std::size_t bytes)
{
    const std::vector<std::byte>& all = m_launch.parameters;
    if (address % bytes == 0 && address <= all.size() && bytes <= all.size() - address)
        return all.data() + address;
    fail(warp, step, lane, fmt::format("byte {} of {} of parameters", address, all.size()));
    return nullptr;
}

void Block::copyLater(const Warp& warp, const Step& step, int lane, std::uint64_t shared,
    std::uint64_t global, std::size_t bytes, std::size_t read)
{
    Copy copy;
    copy.shared = shared;
    copy.bytes = bytes;
    if (read > 0) {
        const std::byte* const from = this->global(warp, step, lane, global, bytes, false);
        if (!from)
            return;
        std::memcpy(copy.data.data(), from, read);
    }
    Thread& thread = m_threads[momentOf(warp, lane).thread];
    if (!m_launch.freedom.copiesLate)
        arrive(thread, copy, warp, step, lane);
    if (m_status.ok())
        m_sharedShadow.setInFlight(shared, bytes, true);
    thread.open.push_back(copy);
}

// The bytes of a copy, written by the thread that asked for it.
void Block::arrive(Thread& /*thread*/, Copy& copy, const Warp& warp, const Step& step, int lane)
{
    if (std::byte* const to = shared(warp, step, lane, copy.shared, copy.bytes, true))
        std::memcpy(to, copy.data.data(), copy.bytes);
    copy.done = true;
}

void Block::commitCopies(const Warp& warp, int lane)
{
    Thread& thread = m_threads[momentOf(warp, lane).thread];
    thread.groups.push_back(std::exchange(thread.open, {}));
}

void Block::waitForCopies(const Warp& warp, const Step& step, int lane, std::size_t pending)
{
    Thread& thread = m_threads[momentOf(warp, lane).thread];
    while (thread.groups.size() > pending && m_status.ok()) {
        for (Copy& copy : thread.groups.front()) {
            m_sharedShadow.setInFlight(copy.shared, copy.bytes, false);
            if (!copy.done)
                arrive(thread, copy, warp, step, lane);
        }
        thread.groups.erase(thread.groups.begin());
    }
}

void Block::fail(const Warp& warp, const Step& step, int lane, std::string what)
{
    if (!m_status.ok())
        return;
    const Program& program = *m_launch.program;
    m_status = Status::error(ErrorKind::Internal,
        fmt::format("{} ({}), line {}, {}: thread {} of block {}: {}", program.name, program.target,
            program.lines[step.index], program.texts[step.index],
            static_cast<std::uint32_t>(warp.number * kLanes + lane), m_number, what));
}

float Block::blurred(float exact, float error)
{
    if (!m_launch.freedom.blursFunctions || !std::isfinite(exact))
        return exact;
    return exact * (1.0F + (m_random() % 2 == 0 ? error : -error));
}

Status runGrid(const Launch& launch)
{
    const Program& program = *launch.program;
    const std::uint64_t threads = launch.block.count();
    if (threads == 0 || threads > 1024 || launch.grid.count() == 0)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("{}: {} threads a block, {} blocks",
                                            program.name, threads, launch.grid.count()));
    if (program.maxThreads != 0 && threads > static_cast<std::uint64_t>(program.maxThreads))
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("{}: {} threads a block, compiled for {}",
                                            program.name, threads, program.maxThreads));
    if (launch.parameters.size() != program.parameterBytes)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{}: {} bytes of parameters, not {}", program.name,
                launch.parameters.size(), program.parameterBytes));
    launch.memory->beginLaunch();
    if (launch.counters)
        launch.counters->steps.resize(program.steps.size());
    std::vector<std::uint32_t> order;
    if (launch.blocks) {
        order = *launch.blocks;
    } else {
        order.resize(launch.grid.count());
        std::iota(order.begin(), order.end(), 0U);
    }
    std::mt19937_64 random(launch.freedom.seed);
    std::ranges::shuffle(order, random);
    Block block(launch);
    for (const std::uint32_t number : order)
        MR_TRY(block.run({number % launch.grid.x, number / launch.grid.x % launch.grid.y,
            number / launch.grid.x / launch.grid.y}));
    return {};
}

} // namespace mr::ptx
