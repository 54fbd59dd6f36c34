#include "gpu/ptx/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

constexpr std::uint8_t kWritten = 1;
constexpr std::uint8_t kInFlight = 2;
constexpr std::uint32_t kWarp = 32;

Use useOf(const Moment& who)
{
    return {who.block + 1, who.barrier, who.meeting, static_cast<std::uint16_t>(who.thread), false,
        false};
}

bool sameWarp(const Use& use, const Moment& who)
{
    return use.thread / kWarp == who.thread / kWarp;
}

// Nothing can go wrong between this earlier use and what `who` does now.
bool isOrdered(const Use& use, const Moment& who)
{
    if (use.blockPlusOne == 0)
        return true;
    if (use.blockPlusOne != who.block + 1)
        return false;
    if (use.barrier < who.barrier)
        return true;
    if (use.isSeveral || !sameWarp(use, who))
        return false;
    return use.meeting < who.meeting || (!use.isWholeWarp && use.thread == who.thread);
}

// Adds a read to those that no barrier has passed yet.
void addReader(Use& reader, const Moment& who)
{
    const Use now = useOf(who);
    if (isOrdered(reader, who)) {
        reader = now;
        return;
    }
    if (reader.blockPlusOne != now.blockPlusOne || !sameWarp(reader, who))
        reader.isSeveral = true;
    else
        reader.isWholeWarp = true;
}

std::string race(const char* what, const Use& use, const Moment& who)
{
    return fmt::format(
        "a race: {} by thread {} of block {}, and by thread {} of block {}, without a "
        "barrier between",
        what, use.thread, use.blockPlusOne - 1, who.thread, who.block);
}

} // namespace

Shadow::Shadow(std::size_t bytes, bool written)
    : m_bytes(bytes)
    , m_written(written)
    , m_pages((bytes + kPageBytes - 1) / kPageBytes)
{
}

Shadow::Page& Shadow::pageAt(std::size_t at)
{
    std::unique_ptr<Page>& page = m_pages[at / kPageBytes];
    if (!page) {
        page = std::make_unique<Page>();
        page->flags.fill(m_written ? kWritten : 0);
    }
    return *page;
}

void Shadow::setWritten(std::size_t at, std::size_t bytes, bool written)
{
    if (at == 0 && bytes == m_bytes) {
        m_written = written;
        for (const std::unique_ptr<Page>& page : m_pages)
            if (page)
                page->flags.fill(written ? kWritten : 0);
        return;
    }
    for (std::size_t i = at; i < at + bytes; ++i)
        pageAt(i).flags[i % kPageBytes] = written ? kWritten : 0;
}

void Shadow::setInFlight(std::size_t at, std::size_t bytes, bool inFlight)
{
    Page& page = pageAt(at);
    for (std::size_t i = at % kPageBytes; i < at % kPageBytes + bytes; ++i)
        page.flags[i] = static_cast<std::uint8_t>(
            inFlight ? page.flags[i] | kInFlight : page.flags[i] & ~kInFlight);
}

std::string Shadow::read(std::size_t at, std::size_t bytes, const Moment& who)
{
    Page& page = pageAt(at);
    for (std::size_t i = at % kPageBytes; i < at % kPageBytes + bytes; ++i) {
        if ((page.flags[i] & kInFlight) != 0)
            return "a read of a copy that was not waited for";
        if ((page.flags[i] & kWritten) == 0)
            return "a read of what nobody wrote";
        if (!isOrdered(page.uses[i].writer, who))
            return race("written", page.uses[i].writer, who) + " read";
        addReader(page.uses[i].reader, who);
    }
    return {};
}

std::string Shadow::write(std::size_t at, std::size_t bytes, const Moment& who)
{
    Page& page = pageAt(at);
    for (std::size_t i = at % kPageBytes; i < at % kPageBytes + bytes; ++i) {
        if ((page.flags[i] & kInFlight) != 0)
            return "a write where a copy is under way";
        if (!isOrdered(page.uses[i].writer, who))
            return race("written twice", page.uses[i].writer, who);
        if (!isOrdered(page.uses[i].reader, who))
            return race("read", page.uses[i].reader, who) + " written";
        page.flags[i] |= kWritten;
        page.uses[i].writer = useOf(who);
    }
    return {};
}

void Shadow::forgetUses()
{
    for (const std::unique_ptr<Page>& page : m_pages)
        if (page)
            page->uses.fill(ByteState());
}

void GlobalMemory::add(const void* begin, std::size_t bytes, std::string name, bool written)
{
    const auto address = reinterpret_cast<std::uint64_t>(begin);
    // Allocations that lay there before were freed.
    auto old = m_allocations.lower_bound(address);
    if (old != m_allocations.begin() &&
        std::prev(old)->first + std::prev(old)->second.bytes > address)
        --old;
    while (old != m_allocations.end() && old->first < address + bytes)
        old = m_allocations.erase(old);
    m_allocations.insert_or_assign(
        address, Allocation{bytes, std::move(name), Shadow(bytes, written), false});
    m_last = m_allocations.end();
}

void GlobalMemory::remove(const void* begin)
{
    m_allocations.erase(reinterpret_cast<std::uint64_t>(begin));
    m_last = m_allocations.end();
}

void GlobalMemory::setWritten(const void* begin, std::size_t bytes)
{
    const auto address = reinterpret_cast<std::uint64_t>(begin);
    auto found = m_allocations.upper_bound(address);
    if (found == m_allocations.begin())
        return;
    --found;
    const std::uint64_t at = address - found->first;
    if (at < found->second.bytes)
        found->second.shadow.setWritten(at, std::min(bytes, found->second.bytes - at), true);
}

void GlobalMemory::beginLaunch()
{
    for (auto& [address, allocation] : m_allocations) {
        if (allocation.used)
            allocation.shadow.forgetUses();
        allocation.used = false;
    }
}

std::byte* GlobalMemory::reach(
    std::uint64_t address, std::size_t bytes, bool writes, const Moment& who, std::string& wrong)
{
    if (address % bytes != 0) {
        wrong = fmt::format("an address that is no multiple of {}", bytes);
        return nullptr;
    }
    if (m_last == m_allocations.end() || address < m_last->first ||
        address + bytes > m_last->first + m_last->second.bytes) {
        m_last = m_allocations.upper_bound(address);
        if (m_last == m_allocations.begin()) {
            m_last = m_allocations.end();
            wrong = "an address before all allocations";
            return nullptr;
        }
        --m_last;
    }
    Allocation& allocation = m_last->second;
    const std::uint64_t at = address - m_last->first;
    if (at + bytes > allocation.bytes) {
        wrong = fmt::format("byte {} of {}, which has {}", at, allocation.name, allocation.bytes);
        m_last = m_allocations.end();
        return nullptr;
    }
    allocation.used = true;
    wrong =
        writes ? allocation.shadow.write(at, bytes, who) : allocation.shadow.read(at, bytes, who);
    if (wrong.empty())
        return reinterpret_cast<std::byte*>(address);
    wrong += fmt::format(" (byte {} of {})", at, allocation.name);
    return nullptr;
}

} // namespace mr::ptx
