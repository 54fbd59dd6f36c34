// Rig of the store's tests: a database in a folder of its own, and runs to put in it.

#pragma once

#include "core/store/run_store.h"
#include "core/store/sqlite.h"

#include <QTemporaryDir>

#include <memory>
#include <string>

namespace mr {

struct StoreRig {
    QTemporaryDir folder;
    std::string path = folder.filePath("data/history.db").toStdString();
    std::unique_ptr<RunStore> store = openStore();

    std::unique_ptr<RunStore> openStore() const
    {
        Result<std::unique_ptr<RunStore>> opened = RunStore::open(path);
        return opened.ok() ? std::move(opened).value() : nullptr;
    }

    std::unique_ptr<RunReader> openReader() const
    {
        Result<std::unique_ptr<RunReader>> opened = RunReader::open(path);
        return opened.ok() ? std::move(opened).value() : nullptr;
    }

    // Plain SQL on a connection of its own, for rows that the interfaces do not show.
    std::int64_t number(std::string_view sql) const
    {
        auto db = Database::open(path, OpenMode::ReadWriteCreate);
        return db.ok() ? db.value()->integer(sql).value() : -1;
    }

    Status change(const char* sql) const
    {
        auto db = Database::open(path, OpenMode::ReadWriteCreate);
        MR_TRY(db.status());
        return db.value()->script(sql);
    }

    std::int64_t begin(const std::string& uuid) const
    {
        return store->beginRun(newRun(uuid)).value();
    }

    static NewRun newRun(const std::string& uuid)
    {
        NewRun run;
        run.uuid = uuid;
        run.name = "run " + uuid;
        run.modelPath = "/models/tiny/";
        run.modelArchitecture = "LlamaForCausalLM";
        run.modelDtype = "float32";
        run.parameters = 260032;
        run.datasetPath = "/data/talks.jsonl";
        run.datasetFormat = "jsonl";
        run.configJson =
            R"({"learningRate":0.002,"policy":"resident","policyOptions":{"order":"by-layer"}})";
        run.planJson = "{}";
        run.hostJson = "{}";
        run.engineVersion = "0.1.0";
        run.dir = "/runs/" + uuid;
        run.totalSteps = 300;
        return run;
    }

    // computeUs 700 and stalls 300: wall 1,000.
    static StepRow step(std::int64_t number, double loss)
    {
        StepRow row;
        row.step = number;
        row.timeMs = number * 2;
        row.wallUs = 1000;
        row.computeUs = 700;
        row.stallUs = {100, 50, 40, 30, 60, 20};
        row.tokens = 4096;
        row.lossTokens = 4000;
        row.staleness = 1;
        row.loss = loss;
        row.learningRate = 1e-3;
        row.gradNorm = 0.5;
        row.h2dBytes = 11;
        row.d2hBytes = 12;
        row.diskReadBytes = 13;
        row.diskWriteBytes = 14;
        row.devicePeakBytes = 1000 + number;
        row.hostPeakBytes = 2000 + number;
        return row;
    }

    // Steps first..last with the loss 10 - step / 100.
    static StoreBatch steps(std::int64_t first, std::int64_t last)
    {
        StoreBatch batch;
        for (std::int64_t s = first; s <= last; ++s)
            batch.steps.push_back(step(s, 10.0 - static_cast<double>(s) / 100.0));
        return batch;
    }
};

} // namespace mr
