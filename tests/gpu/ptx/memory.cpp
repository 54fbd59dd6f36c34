#include "gpu/ptx/memory.h"

#include "gpu/ptx/counters.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <span>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

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
[[gnu::always_inline]] inline bool isOrdered(const Use& use, const Moment& who)
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

void Shadow::split(Page& page, int grain)
{
    const std::size_t parts = std::size_t{1} << (page.grain - grain);
    std::vector<Grain> grains;
    grains.reserve(page.grains.size() * parts);
    for (const Grain& whole : page.grains)
        grains.insert(grains.end(), parts, whole);
    page.grains = std::move(grains);
    page.grain = grain;
}

std::span<Shadow::Grain> Shadow::grainsOf(std::size_t at, std::size_t bytes)
{
    Page& page = m_pages[at / kPageBytes];
    if (page.grains.empty())
        page.grains.assign(kPageBytes >> kLargestGrain, Grain{m_written, false, {}});
    if (const int fitting = std::countr_zero(at | bytes); fitting < page.grain)
        split(page, fitting);
    return {page.grains.data() + (at % kPageBytes >> page.grain), bytes >> page.grain};
}

void Shadow::setWritten(std::size_t at, std::size_t bytes, bool written)
{
    if (at == 0 && bytes == m_bytes) {
        m_written = written;
        for (Page& page : m_pages)
            for (Grain& grain : page.grains)
                grain.isWritten = written;
        return;
    }
    while (bytes > 0) {
        const std::size_t here = std::min(bytes, kPageBytes - at % kPageBytes);
        for (Grain& grain : grainsOf(at, here))
            grain.isWritten = written;
        at += here;
        bytes -= here;
    }
}

void Shadow::setInFlight(std::size_t at, std::size_t bytes, bool inFlight)
{
    for (Grain& grain : grainsOf(at, bytes))
        grain.isInFlight = inFlight;
}

bool Shadow::read(std::size_t at, std::size_t bytes, const Moment& who, std::string& wrong)
{
    for (Grain& grain : grainsOf(at, bytes)) {
        if (grain.isInFlight)
            wrong = "a read of a copy that was not waited for";
        else if (!grain.isWritten)
            wrong = "a read of what nobody wrote";
        else if (!isOrdered(grain.uses.writer, who))
            wrong = race("written", grain.uses.writer, who) + " read";
        else {
            addReader(grain.uses.reader, who);
            continue;
        }
        return false;
    }
    return true;
}

bool Shadow::write(std::size_t at, std::size_t bytes, const Moment& who, std::string& wrong)
{
    for (Grain& grain : grainsOf(at, bytes)) {
        if (grain.isInFlight)
            wrong = "a write where a copy is under way";
        else if (!isOrdered(grain.uses.writer, who))
            wrong = race("written twice", grain.uses.writer, who);
        else if (!isOrdered(grain.uses.reader, who))
            wrong = race("read", grain.uses.reader, who) + " written";
        else {
            grain.isWritten = true;
            grain.uses.writer = useOf(who);
            continue;
        }
        return false;
    }
    return true;
}

void Shadow::forgetUses()
{
    for (Page& page : m_pages)
        for (Grain& grain : page.grains)
            grain.uses = {};
}

void Shadow::addTouched(TouchedMemory& touched) const
{
    for (const Page& page : m_pages) {
        const std::size_t perSector = kSectorBytes >> page.grain;
        for (std::size_t first = 0; first < page.grains.size(); first += perSector) {
            std::size_t read = 0;
            std::size_t written = 0;
            for (const Grain& grain : std::span(page.grains).subspan(first, perSector)) {
                read += grain.uses.reader.blockPlusOne != 0 ? 1 : 0;
                written += grain.uses.writer.blockPlusOne != 0 ? 1 : 0;
            }
            touched.bytesRead += read << page.grain;
            touched.bytesWritten += written << page.grain;
            touched.sectorsRead += read > 0 ? 1 : 0;
            touched.sectorsWritten += written > 0 ? 1 : 0;
        }
    }
}

void GlobalMemory::add(const void* begin, std::size_t bytes, std::string name, bool written)
{
    remove(begin, bytes); // allocations that lay there before were freed
    m_allocations.insert_or_assign(reinterpret_cast<std::uint64_t>(begin),
        Allocation{bytes, std::move(name), Shadow(bytes, written), false});
}

void GlobalMemory::remove(const void* begin, std::size_t bytes)
{
    const auto address = reinterpret_cast<std::uint64_t>(begin);
    auto old = m_allocations.lower_bound(address);
    if (old != m_allocations.begin() &&
        std::prev(old)->first + std::prev(old)->second.bytes > address)
        --old;
    while (old != m_allocations.end() && old->first < address + bytes)
        old = m_allocations.erase(old);
    m_last = m_allocations.end();
}

void GlobalMemory::clear()
{
    m_allocations.clear();
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

std::vector<TouchedMemory> GlobalMemory::touched() const
{
    std::vector<TouchedMemory> all;
    for (const auto& [address, allocation] : m_allocations) {
        if (!allocation.used)
            continue;
        all.push_back({allocation.name, allocation.bytes});
        allocation.shadow.addTouched(all.back());
    }
    return all;
}

std::byte* GlobalMemory::reach(
    std::uint64_t address, std::size_t bytes, bool writes, const Moment& who, std::string& wrong)
{
    if ((address & (bytes - 1)) != 0) { // a power of two
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
    Shadow& shadow = allocation.shadow;
    if (writes ? shadow.write(at, bytes, who, wrong) : shadow.read(at, bytes, who, wrong))
        return reinterpret_cast<std::byte*>(address);
    wrong += fmt::format(" (byte {} of {})", at, allocation.name);
    return nullptr;
}

} // namespace mr::ptx
