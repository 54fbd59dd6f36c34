#include "pages/length_editor.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QSpinBox>

#include <algorithm>
#include <limits>

namespace mr::ui {

namespace {

constexpr SpecRange kEpochRange{0.01, 10000.0};
constexpr int kUsualSteps = 100;

SpecRange stepRange()
{
    return {1.0, findSpecField("steps")->range->most};
}

} // namespace

LengthEditor::LengthEditor(QWidget* parent)
    : m_row(new QWidget(parent))
    , m_epochs(makeNumber(m_row, kEpochRange, 2, 1.0))
    , m_steps(makeInteger(m_row, stepRange()))
    , m_unit(new QComboBox(m_row))
{
    m_steps->setValue(kUsualSteps);
    m_unit->addItem(QString());
    m_unit->addItem(QString());
    auto* layout = new QHBoxLayout(m_row);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_epochs, 1);
    layout->addWidget(m_steps, 1);
    layout->addWidget(m_unit);
    QObject::connect(m_unit, &QComboBox::currentIndexChanged, m_row, [this] { showUnit(); });
    read(RunSpec());
    showUnit();
}

void LengthEditor::read(const RunSpec& spec)
{
    m_unit->setCurrentIndex(spec.steps > 0 ? kSteps : kEpochs);
    if (spec.steps > 0)
        m_steps->setValue(
            static_cast<int>(std::min<std::int64_t>(spec.steps, std::numeric_limits<int>::max())));
    m_epochs->setValue(spec.epochs);
}

void LengthEditor::write(RunSpec& spec) const
{
    const bool bySteps = m_unit->currentIndex() == kSteps;
    spec.steps = bySteps ? m_steps->value() : 0;
    spec.epochs = bySteps ? 1.0 : m_epochs->value();
}

void LengthEditor::retranslate()
{
    m_epochs->setAccessibleName(tr("Epochs"));
    m_steps->setAccessibleName(tr("Steps"));
    m_unit->setAccessibleName(tr("Epochs or steps"));
    m_unit->setItemText(kEpochs, tr("epochs"));
    m_unit->setItemText(kSteps, tr("steps"));
}

std::vector<QWidget*> LengthEditor::parts() const
{
    return {m_epochs, m_steps, m_unit};
}

void LengthEditor::showUnit()
{
    const bool steps = m_unit->currentIndex() == kSteps;
    m_steps->setVisible(steps);
    m_epochs->setVisible(!steps);
    m_row->setFocusProxy(steps ? static_cast<QWidget*>(m_steps) : m_epochs);
}

} // namespace mr::ui
