// ptx_counters [--csv FILE | --check] [OP]: counts what the kernels ask of a card at the shapes of
// models, by the PTX machine, and prints the tables of ptx.md.
//
//   --csv FILE  also writes the expected times, for gpu.sh
//   --check     prints nothing but the kernels that do not keep the limits, of one card and without
//               attention, which takes minutes, and the ops that have no row; exit code 1 if there
//               is one
//   OP          only ops whose name begins so

#include "bench/ptx_cards.h"
#include "bench/ptx_models.h"
#include "bench/ptx_ops.h"
#include "bench/ptx_tables.h"
#include "core/prove/conformance_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr::bench {
namespace {

struct Options {
    std::string csv;
    bool checks = false;
    std::string_view op;
};

Options optionsOf(std::span<char*> arguments)
{
    Options options;
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--csv" && i + 1 < arguments.size())
            options.csv = arguments[++i];
        else if (argument == "--check")
            options.checks = true;
        else
            options.op = argument;
    }
    return options;
}

constexpr std::size_t kCards = 4;
constexpr std::size_t kShown = 1; // the card whose counters are printed

struct TimeRow {
    std::string name;
    std::array<Expected, kCards> expected = {};
    bool isSum = false; // of the rows of an op
};

auto allOps()
{
    return std::array{modelOps(), weightOps(), adapterOps(), recurrentOps()};
}

std::vector<const CountedOp*> chosenOps(const Options& options, const ModelShape& model)
{
    std::vector<const CountedOp*> chosen;
    for (const std::span<const CountedOp> ops : allOps())
        for (const CountedOp& op : ops) {
            const std::string_view name = op.name;
            if (name.starts_with(options.op) && (!op.exists || op.exists(model)) &&
                !(options.checks && name.starts_with("attention")))
                chosen.push_back(&op);
        }
    return chosen;
}

// Adds the op's counters to `counters`, its times to `rows`.
Status addOp(
    const CountedOp& op, const ModelShape& model, std::string& counters, std::vector<TimeRow>& rows)
{
    std::vector<TimeRow> own;
    TimeRow sum{op.name, {}, true};
    for (std::size_t c = 0; c < kCards; ++c) {
        const Card& card = cards()[c];
        MR_ASSIGN(const CountedRun run, count(op, model, card));
        if (c == kShown)
            counters += counterRows(run, card);
        own.resize(run.names.size());
        for (std::size_t i = 0; i < own.size(); ++i) {
            own[i].name = run.names[i];
            own[i].expected[c] = expectedTime(workOf(run.launches[i]), card);
            sum.expected[c].seconds += own[i].expected[c].seconds;
        }
    }
    rows.insert(rows.end(), own.begin(), own.end());
    if (own.size() > 1)
        rows.push_back(sum);
    return {};
}

std::string cell(const TimeRow& row, std::size_t card)
{
    constexpr std::string_view kLetters = "MIFST"; // by Limit
    const Expected& expected = row.expected[card];
    return fmt::format(" {:.1f}{} |", 1e6 * expected.seconds,
        row.isSum ? std::string()
                  : fmt::format(" {}", kLetters[static_cast<std::size_t>(expected.limit)]));
}

Status printTables(const Options& options)
{
    std::ofstream csv(options.csv);
    csv << "kernel,model,card,microseconds\n";
    for (const ModelShape& model : kModels) {
        std::string counters;
        std::vector<TimeRow> rows;
        for (const CountedOp* const op : chosenOps(options, model))
            MR_TRY(addOp(*op, model, counters, rows));
        fmt::print("### {}\n\n{}{}\n| op, microseconds |", model.name, counterHead(), counters);
        for (const Card& card : cards())
            fmt::print(" {} |", card.name);
        fmt::print("\n|---|---|---|---|---|\n");
        for (const TimeRow& row : rows) {
            fmt::print("| {} |", row.name);
            for (std::size_t c = 0; c < kCards; ++c) {
                fmt::print("{}", cell(row, c));
                csv << fmt::format("{},{},{},{:.2f}\n", row.name, model.name, cards()[c].name,
                    1e6 * row.expected[c].seconds);
            }
            fmt::print("\n");
        }
        fmt::print("\n");
        std::fflush(stdout);
    }
    fmt::print("### Limits that are not kept\n\n{}", reasonTable());
    return {};
}

// Matrix products have no PTX here, embedBackward counts fill, and no model of ptx_models.h has a
// soft-cap.
constexpr std::array<std::string_view, 7> kWithoutRow = {"linear", "linearBackwardInput",
    "linearBackwardWeight", "windowProduct", "codeProduct", "fill", "softcap"};

// Ops that nobody counts. The conformance table has every op: a kernel without a case fails
// gpu/ptx/kernels.
std::string uncounted()
{
    std::set<std::string_view> counted(kWithoutRow.begin(), kWithoutRow.end());
    for (const std::span<const CountedOp> ops : allOps())
        for (const CountedOp& op : ops)
            counted.insert(op.name);
    std::string names;
    for (const conformance::Case& line : conformance::wholeTable())
        if (counted.insert(line.op).second)
            names += line.op + ": is not counted\n";
    return names;
}

Status check(const Options& options)
{
    std::string over = uncounted();
    for (const ModelShape& model : kModels)
        for (const CountedOp* const op : chosenOps(options, model)) {
            MR_ASSIGN(const CountedRun run, count(*op, model, cards()[kShown]));
            for (std::size_t i = 0; i < run.names.size(); ++i)
                over += overLimits(run.names[i], run.launches[i]);
        }
    return over.empty() ? Status() : Status::error(ErrorKind::Internal, over);
}

} // namespace
} // namespace mr::bench

int main(int argc, char** argv)
{
    using namespace mr::bench;
    const Options options = optionsOf(std::span(argv, static_cast<std::size_t>(argc)));
    const mr::Status status = options.checks ? check(options) : printTables(options);
    if (!status.ok())
        fmt::print(stderr, "{}\n", status.message());
    return status.ok() ? 0 : 1;
}
