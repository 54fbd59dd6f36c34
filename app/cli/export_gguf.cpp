#include "app/cli/commands.h"
#include "app/cli/export_options.h"
#include "app/cli/stop_on_signal.h"
#include "app/ollama_export.h"
#include "core/base/bytes.h"

#include <millrace/run_spec.h>

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr::app {
namespace {

using Clock = std::chrono::steady_clock;

// A line on a terminal's stderr that is written over, at most five times a second; and the end of
// the work where a signal asks for it.
class ExportLine
{
public:
    Status take(std::uint64_t done, std::uint64_t all)
    {
        if (m_stop.isSeen())
            return Status::error(ErrorKind::Cancelled, "stopped; nothing was left behind");
        const Clock::time_point now = Clock::now();
        constexpr std::chrono::milliseconds kApart{200};
        if (!m_isShown || (done < all && now - m_shown < kApart))
            return {};
        m_shown = now;
        const double seconds = std::chrono::duration<double>(now - m_begin).count();
        const double left =
            done == 0 ? 0.0 : seconds * static_cast<double>(all - done) / static_cast<double>(done);
        std::fprintf(stderr, "\r\033[K%s of %s written, %.0f s left", formatBytes(done).c_str(),
            formatBytes(all).c_str(), left);
        if (done == all)
            std::fprintf(stderr, "\r\033[K");
        return {};
    }

private:
    StopOnSignal m_stop;
    bool m_isShown = isatty(STDERR_FILENO) == 1;
    Clock::time_point m_begin = Clock::now();
    Clock::time_point m_shown;
};

Result<GgufRequest> requestOf(const ExportOptions& options)
{
    GgufRequest request;
    request.model = options.model;
    request.adapter = options.adapter;
    request.out = options.out;
    if (options.precision != "auto") {
        request.form = parseGgufForm(options.precision);
        if (!request.form)
            return Status::error(ErrorKind::InvalidArgument,
                "--precision " + options.precision +
                    " is no type of a GGUF file; use auto, f32, f16, bf16, q8_0, q6_k, q4_k_m or "
                    "q4_0");
    }
    MR_ASSIGN(request.original, isOriginalBase(options));
    MR_ASSIGN(request.device, parseDevice(options.device));
    if (options.check != "full" && options.check != "weights")
        return Status::error(ErrorKind::InvalidArgument,
            "--check " + options.check + " is not known; use full or weights");
    request.asks = options.check == "full";
    request.threads = options.threads;
    return request;
}

Result<GgufOutcome> ggufNow(const ExportOptions& options)
{
    MR_ASSIGN(GgufRequest request, requestOf(options));
    ExportLine line;
    request.progress = [&line](
                           std::uint64_t done, std::uint64_t all) { return line.take(done, all); };
    return options.form == "ollama" ? writeOllamaFolder(request) : writeCheckedGguf(request);
}

void printVerdict(const GgufOutcome& outcome)
{
    for (const auto& [type, error] : outcome.report.errors)
        printText("%s", fmt::format("{}: {} weights, read back {}", type, error.weights,
                            error.largest == 0.0
                                ? std::string("equal")
                                : fmt::format("with an error of {:.2g} of their size, {:.2g} at "
                                              "most",
                                      error.relative, error.largest))
                            .c_str());
    if (outcome.verdict) {
        const ExportVerdict& v = *outcome.verdict;
        printText("%s",
            fmt::format("asked: {} of {} texts become the same tokens; in {} answers {:.1f} % of "
                        "{} tokens agree, mean KL {:.2g}",
                v.sameTexts, v.texts, v.prompts, 100.0 * v.agreement(), v.tokens, v.divergence)
                .c_str());
    }
    for (const std::string& note : outcome.report.notes)
        printText("note: %s", note.c_str());
}

} // namespace

int exportGgufForm(const ExportOptions& options)
{
    auto done = ggufNow(options);
    if (!done.ok())
        return fail(done.status(), options.json);
    const GgufOutcome& outcome = done.value();
    if (options.json) {
        printJson({{"file", outcome.file.string()}, {"bytes", outcome.report.bytes},
            {"form", ggufFormName(outcome.report.form)}, {"passed", outcome.faults.empty()},
            {"faults", outcome.faults}, {"notes", outcome.report.notes}});
        return outcome.faults.empty() ? 0 : 5;
    }
    printText("%s (%s, %.1f MB)", outcome.file.c_str(),
        std::string(ggufFormName(outcome.report.form)).c_str(),
        static_cast<double>(outcome.report.bytes) / 1e6);
    printVerdict(outcome);
    for (const std::string& fault : outcome.faults)
        printText("fault: %s", fault.c_str());
    printText(outcome.faults.empty() ? "the file answers as the model does"
                                     : "the file failed its check; do not use it");
    if (outcome.faults.empty() && options.form == "ollama")
        printText("%s",
            ("there: ollama create NAME -f " + (outcome.file / "Modelfile").string()).c_str());
    return outcome.faults.empty() ? 0 : 5;
}

} // namespace mr::app
