#include "core/plan/policy_options.h"

#include <millrace/run_spec.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace mr {

namespace {

Status refuseValue(const OptionInfo& option, const std::string& value)
{
    return Status::error(ErrorKind::InvalidArgument, "policy option " + std::string(option.name) +
                                                         "=" + value + ": want " +
                                                         std::string(option.want));
}

template <typename Number>
bool readNumber(const std::string& value, Number least, Number most, Number& number)
{
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc() && end == value.data() + value.size() && number >= least &&
           number <= most;
}

// The shortest text that is read as the same number.
template <typename Number>
std::string textOf(Number number)
{
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

template <typename Value>
struct Word {
    std::string_view text;
    Value value;
};

template <typename Value, std::size_t N>
using Words = std::array<Word<Value>, N>;

constexpr Words<ClipMode, 5> kClipModes{
    {{"exact", ClipMode::Exact}, {"per-group", ClipMode::PerGroup}, {"own", ClipMode::Own},
        {"previous-norm", ClipMode::PreviousNorm}, {"two-pass", ClipMode::TwoPass}}};
constexpr Words<WindowSums, 3> kSums{
    {{"device", WindowSums::Device}, {"host", WindowSums::Host}, {"auto", WindowSums::Auto}}};
constexpr Words<bool, 2> kSwitch{{{"off", false}, {"on", true}}};
constexpr Words<ColumnEnergy, 2> kEnergies{
    {{"l2", ColumnEnergy::Squares}, {"l1", ColumnEnergy::Absolutes}}};
constexpr Words<HostClock, 2> kClocks{
    {{"steps", HostClock::Steps}, {"updates", HostClock::Updates}}};
constexpr Words<StateCodec, 2> kCodecs{
    {{"fp32", StateCodec::Plain}, {"compact", StateCodec::Compact}}};
constexpr Words<Tier, 2> kBoundaries{{{"host", Tier::PinnedHost}, {"device", Tier::Device}}};
constexpr Words<int, 2> kBufferCounts{{{"1", 1}, {"2", 2}}};
constexpr Words<DiskGroups, 2> kDiskGroups{
    {{"all", DiskGroups::All}, {"vocabulary", DiskGroups::Vocabulary}}};
constexpr Words<VerifyReads, 2> kVerify{
    {{"sampled", VerifyReads::Sampled}, {"all", VerifyReads::All}}};

// Each kind of option is a pair of functions over a member of PolicyNumbers.

template <auto Member, const auto& Table>
Status readWord(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    for (const auto& word : Table)
        if (word.text == value)
            return numbers.*Member = word.value, Status();
    return refuseValue(option, value);
}

template <auto Member, const auto& Table>
std::optional<std::string> wordText(const PolicyNumbers& numbers)
{
    for (const auto& word : Table)
        if (numbers.*Member == word.value)
            return std::string(word.text);
    return std::nullopt;
}

template <auto Member>
Status readShare(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    double share = 0.0;
    if (!readNumber(value, 0.0, 1.0, share))
        return refuseValue(option, value);
    numbers.*Member = share;
    return {};
}

template <auto Member>
std::optional<std::string> numberText(const PolicyNumbers& numbers)
{
    return numbers.*Member ? std::optional(textOf(*(numbers.*Member))) : std::nullopt;
}

Status readDeviceShare(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    if (value != "auto")
        return readShare<&PolicyNumbers::deviceShare>(option, value, numbers);
    numbers.deviceShare = kBalanced;
    return {};
}

std::optional<std::string> deviceShareText(const PolicyNumbers& numbers)
{
    return numbers.deviceShare == kBalanced ? "auto"
                                            : numberText<&PolicyNumbers::deviceShare>(numbers);
}

constexpr std::int64_t kMostSteps = 1'000'000;

template <auto Member>
Status readSteps(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    std::int64_t steps = 0;
    if (!readNumber(value, std::int64_t{0}, kMostSteps, steps))
        return refuseValue(option, value);
    numbers.*Member = steps;
    return {};
}

Status readInterval(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    WindowInterval interval;
    if (value == "auto")
        interval.from = WindowInterval::From::Rates;
    else if (value == "magnitude")
        interval.from = WindowInterval::From::Magnitude;
    else if (!readNumber(value, std::int64_t{1}, kMostSteps, interval.steps))
        return refuseValue(option, value);
    numbers.interval = interval;
    return {};
}

std::optional<std::string> intervalText(const PolicyNumbers& numbers)
{
    if (!numbers.interval)
        return std::nullopt;
    if (numbers.interval->from == WindowInterval::From::User)
        return textOf(numbers.interval->steps);
    return numbers.interval->from == WindowInterval::From::Rates ? "auto" : "magnitude";
}

Status readFactor(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    double factor = 0.0;
    if (!readNumber(value, 0.01, 100.0, factor))
        return refuseValue(option, value);
    numbers.hostLearningRate = factor;
    return {};
}

constexpr std::int64_t kTileUnit = 2 * kCutElements; // bytes of an upload in BF16

Status readTile(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    MR_ASSIGN(std::uint64_t bytes, parseBytes(value));
    if (bytes < kTileUnit || bytes > std::uint64_t{1} << 34)
        return refuseValue(option, value);
    numbers.tileElements = static_cast<std::int64_t>(bytes) / kTileUnit * kCutElements;
    return {};
}

std::optional<std::string> tileText(const PolicyNumbers& numbers)
{
    return numbers.tileElements ? std::optional(textOf(2 * *numbers.tileElements)) : std::nullopt;
}

Status readOrder(const OptionInfo& /*option*/, const std::string& value, PolicyNumbers& numbers)
{
    Result<WorkOrder> order = parseWorkOrder(value);
    MR_TRY(order.status());
    numbers.order = order.value();
    return {};
}

std::optional<std::string> orderText(const PolicyNumbers& numbers)
{
    return numbers.order ? std::optional(std::string(name(*numbers.order))) : std::nullopt;
}

Status readClipMode(const OptionInfo& option, const std::string& value, PolicyNumbers& numbers)
{
    const Status status = readWord<&PolicyNumbers::clipMode, kClipModes>(option, value, numbers);
    if (status.ok())
        return status;
    return Status::error(ErrorKind::InvalidArgument,
        "policy option clip-mode=" + value +
            " is not known; use clip-mode=exact, per-group, own, previous-norm or two-pass");
}

template <auto Member>
void copy(const PolicyNumbers& from, PolicyNumbers& to)
{
    to.*Member = from.*Member;
}

using N = PolicyNumbers;

template <auto Member, const auto& Table>
constexpr OptionInfo wordOption(
    std::string_view name, unsigned takenBy, std::string_view want, std::string_view help)
{
    return {
        name, takenBy, want, help, readWord<Member, Table>, wordText<Member, Table>, copy<Member>};
}

template <auto Member>
constexpr OptionInfo shareOption(std::string_view name, unsigned takenBy, std::string_view help)
{
    return {name, takenBy, "a share from 0 to 1", help, readShare<Member>, numberText<Member>,
        copy<Member>};
}

template <auto Member>
constexpr OptionInfo stepsOption(std::string_view name, unsigned takenBy, std::string_view help)
{
    return {name, takenBy, "a number of steps from 0 to 1000000", help, readSteps<Member>,
        numberText<Member>, copy<Member>};
}

// In the order in which messages list them.
constexpr std::array kOptions{
    OptionInfo{"order", kAll, "by-microbatch, by-layer or by-layer-flip",
        "in what order micro-batches pass through the layers", readOrder, orderText,
        copy<&N::order>},
    OptionInfo{"clip-mode", kAll, "exact, per-group, own, previous-norm or two-pass",
        "by which norm gradients are clipped; per-group waits for no other group; own is the limit "
        "that a light optimizer sets each weight, previous-norm the norm of the step before, "
        "two-pass the step's own norm at the price of a second backward, for light optimizers "
        "alone",
        readClipMode, wordText<&N::clipMode, kClipModes>, copy<&N::clipMode>},
    OptionInfo{"tile", kTile, "2KiB to 16GiB, for instance 64MiB",
        "bytes of one upload of updated weights", readTile, tileText, copy<&N::tileElements>},
    shareOption<&N::late>(
        "late", kLate, "of each update, made beside the next step's forward; still exact"),
    OptionInfo{"device-share", kDeviceShare, "a share from 0 to 1, or auto",
        "of each update, made on the device", readDeviceShare, deviceShareText,
        copy<&N::deviceShare>},
    stepsOption<&N::warmup>("warmup", kWarmup, "updated at once before the first window"),
    wordOption<&N::accumulateOn, kSums>("accumulate-on", kWarmup, "device, host or auto",
        "where the gradients of a window are summed"),
    shareOption<&N::urgent>("urgent", kColumns, "of the columns, updated on the device at once"),
    OptionInfo{"interval", kColumns, "a number of steps from 1 to 1000000, auto or magnitude",
        "between two updates on the host; auto goes by times, magnitude by the gradients of the "
        "warm-up",
        readInterval, intervalText, copy<&N::interval>},
    stepsOption<&N::select>(
        "select", kColumns, "between two choices of the urgent columns; 0 keeps the first"),
    wordOption<&N::overlap, kSwitch>(
        "overlap", kColumns, "off or on", "whether the host works beside the next window"),
    wordOption<&N::energy, kEnergies>(
        "energy", kColumns, "l2 or l1", "by which sum over their gradients columns are compared"),
    wordOption<&N::hostClock, kClocks>("host-clock", kColumns, "steps or updates",
        "what AdamW counts where one update stands for several steps"),
    OptionInfo{"host-lr", kColumns, "a factor from 0.01 to 100",
        "of the learning rate, where the host updates", readFactor,
        numberText<&N::hostLearningRate>, copy<&N::hostLearningRate>},
    wordOption<&N::state, kCodecs>(
        "state", kAll, "fp32 or compact", "how the optimizer state is kept"),
    shareOption<&N::weightsOnDevice>(
        "weights-on-device", kHomes, "of the blocks, whose weights stay on the device"),
    shareOption<&N::stateOnDevice>(
        "state-on-device", kHomes, "of the blocks, whose optimizer state stays there as well"),
    wordOption<&N::boundary, kBoundaries>(
        "boundary", kHomes, "host or device", "where activations between layers wait for backward"),
    shareOption<&N::activationsOnHost>("activations-on-host", kHomes,
        "of the activations inside blocks, kept on the host and not computed again"),
    wordOption<&N::vocabulary, kBoundaries>("vocabulary", kHomes, "host or device",
        "where the weights of embedding and head lie; from the host the head's come by tiles, and "
        "of the embedding the rows that tokens name"),
    wordOption<&N::buffers, kBufferCounts>(
        "buffers", kHomes, "1 or 2", "on the device for weights and gradients that stream"),
    shareOption<&N::diskShare>("disk-share", kDisk, "of the optimizer state, kept on disk"),
    wordOption<&N::diskGroups, kDiskGroups>("disk-groups", kAllDisk, "all or vocabulary",
        "whose state the disk share is taken from; vocabulary: embedding and head alone"),
    shareOption<&N::weightsOnDisk>("weights-on-disk", kAllDisk, "of the weights, kept on disk"),
    shareOption<&N::gradientsOnDisk>(
        "gradients-on-disk", kAllDisk, "of the gradients, kept on disk"),
    shareOption<&N::boundariesOnDisk>(
        "boundaries-on-disk", kAllDisk, "of the activations between layers, kept on disk"),
    wordOption<&N::verify, kVerify>("verify", kDisk, "sampled or all",
        "which reads of optimizer state are compared with their checksums"),
};

// Earlier programs wrote the name of an option otherwise.
std::string_view presentName(std::string_view option)
{
    return option == "turns" ? "buffers" : option;
}

Status refuseOption(const OptionTaker& taker, std::string_view option, std::string_view why)
{
    std::string names;
    for (const OptionInfo& info : kOptions)
        if (info.isTakenBy(taker.takes))
            names.append(names.empty() ? "" : ", ").append(info.name);
    return Status::error(ErrorKind::InvalidArgument,
        "policy option '" + std::string(option) + "' " + std::string(why) + "; '" +
            std::string(taker.policy) + "' takes " + names);
}

} // namespace

std::span<const OptionInfo> policyOptionTable()
{
    return kOptions;
}

Result<PolicyNumbers> readPolicyOptions(
    const OptionTaker& taker, const std::map<std::string, std::string>& options)
{
    PolicyNumbers numbers;
    for (const auto& [option, value] : options) {
        const auto* info = std::find_if(kOptions.begin(), kOptions.end(),
            [name = presentName(option)](const OptionInfo& o) { return o.name == name; });
        if (info == kOptions.end())
            return refuseOption(taker, option, "is not known");
        if (!info->isTakenBy(taker.takes))
            return refuseOption(taker, option, "is not of this policy");
        MR_TRY(info->read(*info, value, numbers));
    }
    return numbers;
}

std::map<std::string, std::string> policyOptionTexts(const PolicyNumbers& numbers)
{
    std::map<std::string, std::string> texts;
    for (const OptionInfo& option : kOptions)
        if (auto text = option.text(numbers))
            texts.emplace(option.name, *std::move(text));
    return texts;
}

Status checkTaken(const OptionTaker& taker, const PolicyNumbers& numbers)
{
    for (const OptionInfo& option : kOptions)
        if (!option.isTakenBy(taker.takes) && option.text(numbers))
            return refuseOption(taker, option.name, "is not of this policy");
    return {};
}

PolicyNumbers onlyTaken(unsigned takes, PolicyNumbers numbers)
{
    for (const OptionInfo& option : kOptions)
        if (!option.isTakenBy(takes))
            option.copy({}, numbers);
    return numbers;
}

PolicyNumbers filledUp(PolicyNumbers numbers, const PolicyNumbers& others)
{
    for (const OptionInfo& option : kOptions)
        if (!option.text(numbers))
            option.copy(others, numbers);
    return numbers;
}

} // namespace mr
