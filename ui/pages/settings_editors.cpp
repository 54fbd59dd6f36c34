#include "pages/settings_editors.h"

#include "widgets/byte_spin_box.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QDoubleValidator>
#include <QLineEdit>
#include <QLocale>
#include <QSpinBox>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>

namespace mr::ui {

namespace {

constexpr double kMostInt = std::numeric_limits<int>::max();
constexpr double kGiga = 1e9;
constexpr SpecRange kRates{0.0, 10000.0}; // GB/s

int asInt(double value)
{
    return static_cast<int>(std::clamp(value, -kMostInt, kMostInt));
}

// A whole number; a value outside the box's range is shown as the nearest one inside.
template <typename Whole>
class IntegerEditor final : public SettingEditor
{
public:
    IntegerEditor(
        const SpecField& field, Whole RunSpec::*member, const SettingLook& look, QWidget* parent)
        : m_look(look)
        , m_member(member)
        , m_box(makeInteger(parent, field.range.value_or(SpecRange{0.0, kMostInt})))
    {
        // An unsigned number names something, as a seed.
        m_box->setGroupSeparatorShown(std::is_signed_v<Whole>);
        read(RunSpec());
        QObject::connect(m_box, &QSpinBox::valueChanged, m_box, [this] { showUnit(); });
    }

    QWidget* widget() const override { return m_box; }

    void read(const RunSpec& spec) override
    {
        constexpr auto kLeast = std::is_signed_v<Whole> ? std::numeric_limits<int>::min() : 0;
        constexpr auto kMost = std::numeric_limits<int>::max();
        m_box->setValue(static_cast<int>(
            std::clamp(spec.*m_member, static_cast<Whole>(kLeast), static_cast<Whole>(kMost))));
    }

    void write(RunSpec& spec) const override
    {
        spec.*m_member = static_cast<Whole>(m_box->value());
    }

    void retranslate() override
    {
        if (m_look.special)
            m_box->setSpecialValueText(SettingWords::text(m_look.special));
        showUnit();
    }

private:
    void showUnit() // "1 step", "2 steps"
    {
        if (m_look.unit)
            m_box->setSuffix(SettingWords::text(m_look.unit, m_box->value()));
    }

    const SettingLook& m_look;
    Whole RunSpec::*m_member;
    QSpinBox* m_box;
};

// A number; a rate is shown in GB/s.
class NumberEditor final : public SettingEditor
{
public:
    NumberEditor(
        const SpecField& field, double RunSpec::*member, const SettingLook& look, QWidget* parent)
        : m_look(look)
        , m_member(member)
        , m_isRate(field.unit == SpecUnit::BytesPerSecond)
        , m_box(makeNumber(parent, field.range.value_or(kRates), look.decimals, look.step))
    {
        if (m_isRate)
            m_box->setSuffix(QStringLiteral(" GB/s"));
        read(RunSpec());
    }

    QWidget* widget() const override { return m_box; }
    void read(const RunSpec& spec) override { m_box->setValue(spec.*m_member / scale()); }
    void write(RunSpec& spec) const override { spec.*m_member = m_box->value() * scale(); }

    void retranslate() override
    {
        if (m_look.special)
            m_box->setSpecialValueText(SettingWords::text(m_look.special));
    }

private:
    double scale() const { return m_isRate ? kGiga : 1.0; }

    const SettingLook& m_look;
    double RunSpec::*m_member;
    bool m_isRate;
    QDoubleSpinBox* m_box;
};

// A number of any size, "2e-5"; the default, for which the program chooses, is an empty text.
class FreeNumberEditor final : public SettingEditor
{
public:
    FreeNumberEditor(
        const SpecField& field, double RunSpec::*member, const SettingLook& look, QWidget* parent)
        : m_look(look)
        , m_member(member)
        , m_usual(RunSpec().*member)
        , m_line(new QLineEdit(parent))
    {
        const SpecRange range = field.range.value_or(SpecRange{});
        auto* validator = new QDoubleValidator(std::max(0.0, range.least), range.most, 12, m_line);
        validator->setLocale(QLocale::c()); // reads the same everywhere
        m_line->setValidator(validator);
        read(RunSpec());
    }

    QWidget* widget() const override { return m_line; }

    void read(const RunSpec& spec) override
    {
        const double value = spec.*m_member;
        m_line->setText(value == m_usual ? QString() : QLocale::c().toString(value, 'g', 6));
    }

    void write(RunSpec& spec) const override
    {
        const QString text = m_line->text();
        spec.*m_member = text.isEmpty() ? m_usual : QLocale::c().toDouble(text);
    }

    void retranslate() override
    {
        const bool isOther = m_isAdapter && m_look.adapterSpecial != nullptr;
        m_line->setPlaceholderText(
            SettingWords::text(isOther ? m_look.adapterSpecial : m_look.special));
    }

    void setAdapter(bool on) override
    {
        m_isAdapter = on;
        retranslate();
    }

private:
    const SettingLook& m_look;
    double RunSpec::*m_member;
    double m_usual;
    QLineEdit* m_line;
    bool m_isAdapter = false;
};

class TextEditor final : public SettingEditor
{
public:
    TextEditor(std::string RunSpec::*member, const SettingLook& look, QWidget* parent)
        : m_look(look)
        , m_member(member)
        , m_line(new QLineEdit(parent))
    {
    }

    QWidget* widget() const override { return m_line; }
    void read(const RunSpec& spec) override
    {
        m_line->setText(QString::fromStdString(spec.*m_member));
    }
    void write(RunSpec& spec) const override { spec.*m_member = m_line->text().toStdString(); }

    void retranslate() override
    {
        if (m_look.special)
            m_line->setPlaceholderText(SettingWords::text(m_look.special));
    }

private:
    const SettingLook& m_look;
    std::string RunSpec::*m_member;
    QLineEdit* m_line;
};

class BytesEditor final : public SettingEditor
{
public:
    BytesEditor(std::uint64_t RunSpec::*member, const SettingLook& look, QWidget* parent)
        : m_look(look)
        , m_member(member)
        , m_box(new ByteSpinBox(parent))
    {
        read(RunSpec());
    }

    QWidget* widget() const override { return m_box; }
    void read(const RunSpec& spec) override { m_box->setBytes(spec.*m_member); }
    void write(RunSpec& spec) const override { spec.*m_member = m_box->bytes(); }
    void retranslate() override { m_box->setSpecialValueText(SettingWords::text(m_look.special)); }

private:
    const SettingLook& m_look;
    std::uint64_t RunSpec::*m_member;
    ByteSpinBox* m_box;
};

// One of several words.
template <typename Value>
class ChoiceEditor final : public SettingEditor
{
public:
    ChoiceEditor(
        const SpecField& field, Value RunSpec::*member, const SettingLook& look, QWidget* parent)
        : m_field(field)
        , m_member(member)
        , m_look(look)
        , m_box(new QComboBox(parent))
    {
        for (const ChoiceLook& choice : look.choices)
            m_box->addItem(QString(), static_cast<int>(valueOf(choice)));
        read(RunSpec());
    }

    QWidget* widget() const override { return m_box; }

    // A value without an item chooses the first.
    void read(const RunSpec& spec) override
    {
        m_box->setCurrentIndex(std::max(0, m_box->findData(static_cast<int>(spec.*m_member))));
    }

    void write(RunSpec& spec) const override
    {
        spec.*m_member = static_cast<Value>(m_box->currentData().toInt());
    }

    void retranslate() override
    {
        for (int i = 0; i < m_box->count(); ++i)
            m_box->setItemText(
                i, SettingWords::text(m_look.choices[static_cast<std::size_t>(i)].text));
    }

private:
    Value valueOf(const ChoiceLook& choice) const
    {
        RunSpec spec;
        (void)readOption(m_field, choice.word, spec).ok(); // the table has the words of the field
        return spec.*m_member;
    }

    const SpecField& m_field;
    Value RunSpec::*m_member;
    const SettingLook& m_look;
    QComboBox* m_box;
};

class CheckEditor final : public SettingEditor
{
public:
    CheckEditor(bool RunSpec::*member, const SettingLook& look, QWidget* parent)
        : m_look(look)
        , m_member(member)
        , m_box(new QCheckBox(parent))
    {
        read(RunSpec());
    }

    QWidget* widget() const override { return m_box; }
    void read(const RunSpec& spec) override { m_box->setChecked(spec.*m_member); }
    void write(RunSpec& spec) const override { spec.*m_member = m_box->isChecked(); }
    void retranslate() override { m_box->setText(SettingWords::text(m_look.caption)); }

private:
    const SettingLook& m_look;
    bool RunSpec::*m_member;
    QCheckBox* m_box;
};

// Makes the editor that fits the type of the member.
struct Maker {
    const SpecField& field;
    const SettingLook& look;
    QWidget* parent;

    using Made = std::unique_ptr<SettingEditor>;

    Made operator()(std::int64_t RunSpec::*member) const
    {
        return std::make_unique<IntegerEditor<std::int64_t>>(field, member, look, parent);
    }

    Made operator()(std::uint64_t RunSpec::*member) const
    {
        if (field.unit == SpecUnit::Bytes)
            return std::make_unique<BytesEditor>(member, look, parent);
        return std::make_unique<IntegerEditor<std::uint64_t>>(field, member, look, parent);
    }

    Made operator()(double RunSpec::*member) const
    {
        if (look.decimals == kAnyDigits)
            return std::make_unique<FreeNumberEditor>(field, member, look, parent);
        return std::make_unique<NumberEditor>(field, member, look, parent);
    }

    Made operator()(bool RunSpec::*member) const
    {
        if (look.choices.empty())
            return std::make_unique<CheckEditor>(member, look, parent);
        return std::make_unique<ChoiceEditor<bool>>(field, member, look, parent);
    }

    Made operator()(std::string RunSpec::*member) const
    {
        return std::make_unique<TextEditor>(member, look, parent);
    }

    template <typename Value>
    Made operator()(Value RunSpec::*member) const
    {
        if constexpr (std::is_enum_v<Value>)
            return std::make_unique<ChoiceEditor<Value>>(field, member, look, parent);
        else
            return nullptr; // lists have sections of their own
    }
};

} // namespace

QSpinBox* makeInteger(QWidget* parent, const SpecRange& range)
{
    auto* box = new QSpinBox(parent);
    box->setRange(asInt(range.orZero ? 0.0 : range.least), asInt(range.most));
    box->setGroupSeparatorShown(true);
    box->setKeyboardTracking(false);
    return box;
}

QDoubleSpinBox* makeNumber(QWidget* parent, const SpecRange& range, int decimals, double step)
{
    const double smallest = std::pow(10.0, -decimals);
    auto* box = new QDoubleSpinBox(parent);
    box->setDecimals(decimals);
    box->setRange(range.least + (range.hasLeast ? 0.0 : smallest),
        range.most - (range.hasMost ? 0.0 : smallest));
    box->setSingleStep(step);
    box->setKeyboardTracking(false);
    return box;
}

std::unique_ptr<SettingEditor> SettingEditor::make(
    const SpecField& field, const SettingLook& look, QWidget* parent)
{
    auto editor = std::visit(Maker{field, look, parent}, field.member);
    editor->widget()->setObjectName(QLatin1String(look.key));
    return editor;
}

} // namespace mr::ui
