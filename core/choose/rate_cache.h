// RateCache: the measured rates of this machine, kept in a file, so that a plan knows times at
// once.
//
// An entry belongs to one device with its threads and link, one compute type, and one shape of
// layers and micro-batch (or a stand-in, for models too large to try here). Disks have entries of
// their own (scratch_rates.h), so a Feedback in here knows nothing of them.
//
// Threads  A value; load() and save() block (files).
// Errors   A file that cannot be read or understood is an empty cache: rates can be measured again.
//          save(): those of replaceFile().

#pragma once

#include "core/plan/model_shape.h"

#include <millrace/scratch.h>
#include <millrace/status.h>

#include <filesystem>
#include <map>
#include <string>

namespace mr {

// When an entry was measured, and how busy other programs kept the processors meanwhile.
struct RateStamp {
    double unixSeconds = 0.0; // 0: not known, of an older program
    double othersPercent = 0.0;
};

inline constexpr double kMostOthersPercent = 10.0; // above it a measurement is of others, too

// Wall clock, for stamps.
double unixSecondsNow();

class RateCache
{
public:
    static std::filesystem::path defaultPath(); // in the user's data folder
    static RateCache load(const std::filesystem::path& path);

    // Null if there is none.
    const Feedback* find(const std::string& key) const;
    // Whether an entry needs no measuring again: a month after a calm moment, ten minutes after a
    // busy one, since rates kept from that would be wrong for good.
    bool isFresh(const std::string& key, double unixSeconds) const;
    void put(const std::string& key, const Feedback& rates) { m_entries[key] = rates; }
    // A busy measurement leaves the rates of a calm one as they are, and is tried again.
    void putMeasured(const std::string& key, const Feedback& rates, const RateStamp& stamp);
    const ScratchSpeed* findDisk(const std::string& key) const;
    void putDisk(const std::string& key, const ScratchSpeed& speed) { m_disks[key] = speed; }
    Status save(const std::filesystem::path& path) const;

private:
    std::map<std::string, Feedback> m_entries;
    std::map<std::string, RateStamp> m_stamps; // for entries
    std::map<std::string, ScratchSpeed> m_disks;
};

} // namespace mr
