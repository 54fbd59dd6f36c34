// FaultyIo: any DiskIo, with faults of disks and kernels by rule, and a record of its requests.
//
// Threads  As DiskIo. The test's thread sets the switches of DiskFaults at any time, and reads the
//          record once the store is gone.

#pragma once

#include "core/tier/disk_io.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace mr::test {

enum class FaultKind {
    Result,    // answers `value` and moves nothing
    Short,     // moves the whole pages of `value` bytes and answers `value`
    Lost,      // a write that answers success and writes nothing
    Misplaced, // a write that goes `value` bytes further
    Flipped,   // a read with one bit turned
    Broken,    // reap() itself answers `value`, for good
};

struct FaultRule {
    FaultKind kind = FaultKind::Result;
    DiskOp op = DiskOp::Read;
    int nth = 0; // request with this op, from 0
    std::int64_t value = 0;
    int times = 1; // requests for the same place that it hits
};

struct DiskFaults {
    std::vector<FaultRule> rules;
    std::atomic<bool> hold = false;            // no completion passes
    std::atomic<std::uint64_t> holdOffset = 0; // none of a request here passes; 0: no such

    // Recorded.
    std::vector<DiskRequest> seen; // in order of submission; the first kRoom
    std::array<std::atomic<std::uint64_t>, 2> mostBytes{}; // in flight at once, by op
    std::atomic<std::uint64_t> submitted = 0;
    std::atomic<int> inFlightAtEnd = -1;
    static constexpr std::size_t kRoom = 4096;
};

class FaultyIo final : public DiskIo
{
public:
    FaultyIo(std::unique_ptr<DiskIo> inner, DiskFaults& faults)
        : m_inner(std::move(inner))
        , m_faults(faults)
        , m_rules(faults.rules.size())
        , m_requests(m_inner->capacity())
    {
        m_faults.seen.reserve(DiskFaults::kRoom);
        m_ready.reserve(m_inner->capacity());
    }
    ~FaultyIo() override { m_faults.inFlightAtEnd = m_inFlight; }

    std::string_view name() const noexcept override { return m_inner->name(); }
    std::size_t capacity() const noexcept override { return m_inner->capacity(); }
    int flush() noexcept override { return m_inner->flush(); }
    void wake() noexcept override { m_inner->wake(); }

    bool submit(const DiskRequest& request) noexcept override
    {
        DiskRequest passed = request;
        State& state = m_requests[request.tag];
        state = {request, {}, false};
        if (const FaultRule* rule = matching(request); rule && !apply(*rule, passed, state)) {
            m_ready.push_back({request.tag, *state.answer});
        } else if (!m_inner->submit(passed)) {
            return false;
        }
        record(request);
        return true;
    }

    int reap(std::span<DiskCompletion> out, std::chrono::microseconds limit) noexcept override
    {
        for (const FaultRule& rule : m_faults.rules)
            if (rule.kind == FaultKind::Broken && m_inFlight > 0)
                return static_cast<int>(rule.value);
        std::array<DiskCompletion, 64> got;
        const bool mayWait = m_ready.empty() && !m_faults.hold && m_faults.holdOffset == 0;
        const auto wait = mayWait ? limit : std::min(limit, std::chrono::microseconds(200));
        const int count = m_inner->reap(got, wait);
        if (count < 0)
            return count;
        for (int i = 0; i < count; ++i)
            m_ready.push_back(finished(got[static_cast<std::size_t>(i)]));
        return handOver(out);
    }

private:
    struct Rule {
        int seen = 0;
        int used = 0;
        std::optional<std::uint64_t> offset;
    };
    struct State {
        DiskRequest request;
        std::optional<std::int64_t> answer;
        bool flip = false;
    };

    const FaultRule* matching(const DiskRequest& request) noexcept
    {
        for (std::size_t i = 0; i < m_rules.size(); ++i) {
            const FaultRule& rule = m_faults.rules[i];
            Rule& state = m_rules[i];
            if (rule.kind == FaultKind::Broken || rule.op != request.op)
                continue;
            const bool again = state.offset == request.offset;
            if (!again && (state.offset || state.seen++ != rule.nth))
                continue;
            state.offset = request.offset;
            if (state.used < rule.times) {
                ++state.used;
                return &rule;
            }
        }
        return nullptr;
    }

    // False: nothing reaches the inner means.
    static bool apply(const FaultRule& rule, DiskRequest& passed, State& state) noexcept
    {
        switch (rule.kind) {
        case FaultKind::Result:
        case FaultKind::Broken:
            state.answer = rule.value;
            return false;
        case FaultKind::Lost:
            state.answer = passed.bytes;
            return false;
        case FaultKind::Short:
            state.answer = rule.value;
            passed.bytes = static_cast<std::uint32_t>(rule.value / 4096 * 4096);
            return passed.bytes > 0;
        case FaultKind::Misplaced:
            passed.offset += static_cast<std::uint64_t>(rule.value);
            return true;
        case FaultKind::Flipped:
            state.flip = true;
            return true;
        }
        return true;
    }

    DiskCompletion finished(DiskCompletion completion) noexcept
    {
        State& state = m_requests[completion.tag];
        if (state.flip)
            state.request.memory[state.request.bytes / 2] ^= std::byte{16};
        if (state.answer)
            completion.result = *state.answer;
        return completion;
    }

    int handOver(std::span<DiskCompletion> out) noexcept
    {
        std::size_t count = 0;
        const std::uint64_t held = m_faults.holdOffset.load(std::memory_order_acquire);
        if (m_faults.hold.load(std::memory_order_acquire))
            return 0;
        for (std::size_t i = 0; i < m_ready.size() && count < out.size();) {
            const DiskRequest& request = m_requests[m_ready[i].tag].request;
            if (held != 0 && request.offset == held) {
                ++i;
                continue;
            }
            out[count++] = m_ready[i];
            m_bytes[static_cast<std::size_t>(request.op)] -= request.bytes;
            --m_inFlight;
            m_ready.erase(m_ready.begin() + static_cast<std::ptrdiff_t>(i));
        }
        return static_cast<int>(count);
    }

    void record(const DiskRequest& request) noexcept
    {
        ++m_inFlight;
        std::uint64_t& bytes = m_bytes[static_cast<std::size_t>(request.op)];
        bytes += request.bytes;
        auto& most = m_faults.mostBytes[static_cast<std::size_t>(request.op)];
        most = std::max(most.load(), bytes);
        if (m_faults.seen.size() < DiskFaults::kRoom)
            m_faults.seen.push_back(request);
        ++m_faults.submitted;
    }

    std::unique_ptr<DiskIo> m_inner;
    DiskFaults& m_faults;
    std::vector<Rule> m_rules;
    std::vector<State> m_requests; // by tag
    std::vector<DiskCompletion> m_ready;
    std::array<std::uint64_t, 2> m_bytes{};
    int m_inFlight = 0;
};

} // namespace mr::test
