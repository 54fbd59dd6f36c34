#include "core/exchange/gguf_values.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace mr {
namespace {

class ModelValues
{
public:
    ModelValues(const ModelConfig& config, const GgufFamily& family)
        : m_config(config)
        , m_family(family)
        , m_prefix(std::string(family.architecture) + ".")
    {
    }

    void addSizes()
    {
        const BlockKind& kind = m_config.block;
        count("block_count", m_config.layers);
        count("context_length", m_config.maxPositions);
        count("embedding_length", m_config.hidden);
        addWidths();
        count("attention.head_count", kind.heads);
        addKeyHeads();
        number("attention.layer_norm_rms_epsilon", m_config.rmsNormEps);
        count("vocab_size", m_config.vocab);
    }

    void addHeads()
    {
        const BlockKind& wide = whole();
        count("attention.key_length", wide.headDim);
        count("attention.value_length", wide.headDim);
        if (is("gemma4")) {
            count("attention.key_length_swa", windowed().headDim);
            count("attention.value_length_swa", windowed().headDim);
            count("rope.dimension_count_swa", windowed().headDim);
        }
        const std::int64_t turned = m_config.ropes.front().rotaryDim;
        count("rope.dimension_count", is("gemma4") || turned == 0 ? wide.headDim : turned);
    }

    void addRope()
    {
        const Rope& rope = m_config.ropes.front();
        const RopeScaling& scaling = rope.scaling;
        const auto dim = static_cast<double>(m_config.turnedColumns(rope));
        const double theta = scaling.alpha > 0.0
                                 ? rope.theta * std::pow(scaling.alpha, dim / (dim - 2.0))
                                 : rope.theta;
        number("rope.freq_base", theta);
        if (m_config.ropes.size() > 1)
            number("rope.freq_base_swa", m_config.ropes.back().theta);
        addScaling(rope);
        if (is("qwen35"))
            addAxes(static_cast<std::int32_t>(rope.rotaryDim / 2));
        if (is("granite") && !m_config.kindOf(0).turns)
            add("rope.scaling.finetuned", GgufValue::boolean(false));
    }

    void addWindows()
    {
        const std::int64_t window = m_config.window();
        if (is("phi3") || window > 0)
            count("attention.sliding_window", window);
        if (window == 0 || is("phi3") || is("llama") || is("gemma2"))
            return;
        std::vector<bool> pattern;
        for (std::int64_t block = 0; block < m_config.layers; ++block)
            pattern.push_back(m_config.kindOf(block).window > 0);
        add("attention.sliding_window_pattern", GgufValue::bools(pattern));
    }

    void addFactors()
    {
        const BlockKind& kind = m_config.kindOf(0);
        if (kind.attentionCap > 0.0 || is("gemma2"))
            number("attn_logit_softcapping", kind.attentionCap);
        if (m_config.logitCap > 0.0 || is("gemma2"))
            number("final_logit_softcapping", m_config.logitCap);
        if (is("granite")) {
            number("attention.scale", kind.scoreScale);
            number("embedding_scale", m_config.embeddingScale);
            number("residual_scale", kind.branchScale);
            number("logit_scale", 1.0 / m_config.logitScale);
        }
        if (is("gemma4")) {
            count("attention.shared_kv_layers", sharedLayers());
            count("embedding_length_per_layer_input", m_config.layerInput);
        }
    }

    void addStates()
    {
        const auto kinds = m_config.kinds();
        const auto found = std::ranges::find_if(kinds, &BlockKind::isDelta);
        if (found == kinds.end())
            return;
        const DeltaShape& delta = found->delta;
        count("ssm.conv_kernel", found->taps);
        count("ssm.state_size", delta.keyDim);
        count("ssm.group_count", delta.keyHeads);
        count("ssm.time_step_rank", delta.valueHeads);
        count("ssm.inner_size", delta.valueColumns());
        std::vector<bool> recurrent;
        for (std::int64_t block = 0; block < m_config.layers; ++block)
            recurrent.push_back(m_config.kindOf(block).isDelta());
        add("attention.recurrent_layers", GgufValue::bools(recurrent));
        // The layer after which the first one without a state comes; older programs read it.
        const auto first = std::ranges::find(recurrent, false) - recurrent.begin();
        count("full_attention_interval", first + 1);
    }

    GgufValues values;

private:
    bool is(std::string_view architecture) const { return m_family.architecture == architecture; }

    void add(const char* key, GgufValue value)
    {
        values.emplace_back(m_prefix + key, std::move(value));
    }
    void count(const char* key, std::int64_t value)
    {
        add(key, GgufValue::u32(static_cast<std::uint32_t>(value)));
    }
    void number(const char* key, double value)
    {
        add(key, GgufValue::f32(static_cast<float>(value)));
    }

    // Layers that see everything, and those with a window; the first layer where there are none.
    const BlockKind& whole() const { return kindWith(false); }
    const BlockKind& windowed() const { return kindWith(true); }
    const BlockKind& kindWith(bool window) const
    {
        for (std::int64_t block = 0; block < m_config.layers; ++block)
            if (const BlockKind& kind = m_config.kindOf(block);
                !kind.isDelta() && (kind.window > 0) == window)
                return kind;
        return m_config.kindOf(0);
    }

    // One number, or one for each layer where they differ.
    template <typename Of>
    void perLayer(const char* key, Of of)
    {
        std::vector<std::int32_t> each;
        for (std::int64_t block = 0; block < m_config.layers; ++block)
            each.push_back(static_cast<std::int32_t>(of(m_config.kindOf(block))));
        const bool isOne = std::ranges::count(each, each.front()) == std::ssize(each);
        if (isOne)
            count(key, each.front());
        else
            add(key, GgufValue::i32s(each));
    }
    void addWidths()
    {
        perLayer("feed_forward_length", [](const BlockKind& kind) { return kind.intermediate; });
    }
    void addKeyHeads()
    {
        const std::int64_t own = m_config.block.kvHeads;
        perLayer("attention.head_count_kv",
            [own](const BlockKind& kind) { return kind.isDelta() ? own : kind.kvHeads; });
    }

    std::int64_t sharedLayers() const
    {
        std::int64_t shared = 0;
        for (std::int64_t block = 0; block < m_config.layers; ++block)
            shared += m_config.kindOf(block).readsKeys() ? 1 : 0;
        return shared;
    }

    // Pairs that turn by time, height and width, in turn: 11, 11 and 10 as published. For text all
    // axes are alike, but a pair that belongs to none would stay.
    void addAxes(std::int32_t pairs)
    {
        add("rope.dimension_sections",
            GgufValue::i32s({(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0}));
    }

    void addScaling(const Rope& rope)
    {
        const RopeScaling& scaling = rope.scaling;
        if (is("phi3"))
            count("rope.scaling.original_context_length",
                scaling.originalPositions > 0.0
                    ? static_cast<std::int64_t>(scaling.originalPositions)
                    : m_config.maxPositions);
        if (scaling.type == RopeType::Linear || scaling.type == RopeType::Yarn) {
            const bool isYarn = scaling.type == RopeType::Yarn;
            add("rope.scaling.type", GgufValue::string(isYarn ? "yarn" : "linear"));
            number("rope.scaling.factor", scaling.factor);
        }
        if (scaling.type == RopeType::LongRope)
            number("rope.scaling.attn_factor", magnitude(rope));
        if (scaling.type == RopeType::Yarn)
            addYarn(rope);
    }

    void addYarn(const Rope& rope)
    {
        const RopeScaling& scaling = rope.scaling;
        count("rope.scaling.original_context_length",
            static_cast<std::int64_t>(scaling.originalPositions));
        number("rope.scaling.yarn_beta_fast", scaling.betaFast);
        number("rope.scaling.yarn_beta_slow", scaling.betaSlow);
        // llama.cpp multiplies cos and sin by 1 + 0.1 ln(factor) times this.
        const double usual = 1.0 + 0.1 * std::log(scaling.factor);
        const double own = magnitude(rope);
        if (is("mistral3") && scaling.mscaleAllDim > 0.0)
            number("rope.scaling.yarn_log_multiplier", scaling.mscaleAllDim);
        else if (std::abs(own - usual) > 1e-6 * usual)
            number("rope.scaling.attn_factor", own / usual);
        if (scaling.queryGrowth != 0.0)
            number("attention.temperature_scale", scaling.queryGrowth);
    }

    double magnitude(const Rope& rope) const
    {
        return ropeFrequencies(rope.scaling, m_config.shapeOf(rope), m_config.maxPositions)
            .attentionFactor;
    }

    const ModelConfig& m_config;
    const GgufFamily& m_family;
    std::string m_prefix;
};

} // namespace

std::uint32_t ggufFileType(GgufType type) noexcept
{
    switch (type) {
    case GgufType::F16:
        return 1;
    case GgufType::Q4_0:
        return 2;
    case GgufType::Q8_0:
        return 7;
    case GgufType::Q4_K:
        return 15; // Q4_K_M
    case GgufType::Q6_K:
        return 18;
    case GgufType::BF16:
        return 32;
    default:
        return 0;
    }
}

GgufValues ggufModelValues(
    const ModelConfig& config, const GgufLayout& layout, GgufType type, const std::string& name)
{
    ModelValues model(config, *layout.family);
    model.values = {
        {"general.architecture", GgufValue::string(std::string(layout.family->architecture))},
        {"general.type", GgufValue::string("model")}, {"general.name", GgufValue::string(name)},
        {"general.file_type", GgufValue::u32(ggufFileType(type))},
        {"general.quantization_version", GgufValue::u32(2)}};
    model.addSizes();
    model.addHeads();
    model.addRope();
    model.addWindows();
    model.addFactors();
    model.addStates();
    return std::move(model.values);
}

} // namespace mr
