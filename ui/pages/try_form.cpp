#include "pages/try_form.h"

#include "text/svg_icon.h"

#include <QDoubleSpinBox>
#include <QEvent>
#include <QFontMetrics>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QShortcut>
#include <QSpinBox>
#include <QVBoxLayout>

#include <limits>

namespace mr::ui {

namespace {

constexpr int kPromptLines = 4;
constexpr int kMostTokens = 4096;
constexpr int kUsualTokens = 128;

} // namespace

TryForm::TryForm(QWidget* parent)
    : QWidget(parent)
    , m_text(new QPlainTextEdit(this))
    , m_system(new QLineEdit(this))
    , m_seed(new QSpinBox(this))
    , m_temperature(new QDoubleSpinBox(this))
    , m_topP(new QDoubleSpinBox(this))
    , m_maxTokens(new QSpinBox(this))
    , m_ask(new QPushButton(svgIcon(QStringLiteral("play")), QString(), this))
    , m_stop(new QPushButton(svgIcon(QStringLiteral("stop")), QString(), this))
{
    m_text->setObjectName(QStringLiteral("tryPrompt"));
    m_system->setObjectName(QStringLiteral("trySystem"));
    m_ask->setObjectName(QStringLiteral("tryAsk"));
    m_stop->setObjectName(QStringLiteral("tryStop"));
    m_text->setTabChangesFocus(true);
    m_text->setFixedHeight(m_text->fontMetrics().lineSpacing() * kPromptLines + 12);
    m_seed->setRange(0, std::numeric_limits<int>::max());
    m_seed->setValue(1);
    m_temperature->setRange(0.0, 5.0);
    m_temperature->setSingleStep(0.1);
    m_topP->setRange(0.0, 1.0);
    m_topP->setSingleStep(0.05);
    m_topP->setValue(1.0);
    m_maxTokens->setRange(1, kMostTokens);
    m_maxTokens->setValue(kUsualTokens);
    build();
    connect(m_ask, &QPushButton::clicked, this, &TryForm::askRequested);
    connect(m_stop, &QPushButton::clicked, this, &TryForm::stopRequested);
    connect(m_text, &QPlainTextEdit::textChanged, this, &TryForm::enable);
    for (const int key : {Qt::Key_Return, Qt::Key_Enter}) {
        auto* shortcut = new QShortcut(QKeySequence(static_cast<int>(Qt::CTRL) | key), this);
        shortcut->setContext(Qt::WidgetWithChildrenShortcut);
        connect(shortcut, &QShortcut::activated, m_ask, &QPushButton::click);
    }
    auto* escape = new QShortcut(QKeySequence(Qt::Key_Escape), this);
    escape->setContext(Qt::WidgetWithChildrenShortcut);
    connect(escape, &QShortcut::activated, m_stop, &QPushButton::click);
    retranslateUi();
    enable();
}

void TryForm::build()
{
    for (QLabel*& label : m_labels)
        label = new QLabel(this);
    const std::array<QWidget*, 6> fields = {
        m_text, m_system, m_temperature, m_topP, m_maxTokens, m_seed};
    for (std::size_t i = 0; i < fields.size(); ++i)
        m_labels.at(i)->setBuddy(fields.at(i));
    auto* figures = new QHBoxLayout;
    for (std::size_t i = 2; i < fields.size(); ++i) {
        figures->addWidget(m_labels.at(i));
        figures->addWidget(fields.at(i));
        figures->addSpacing(8);
    }
    setTabOrder(m_maxTokens, m_seed); // as they stand
    setTabOrder(m_seed, m_stop);
    setTabOrder(m_stop, m_ask);
    figures->addStretch(1);
    figures->addWidget(m_stop);
    figures->addWidget(m_ask);
    auto* grid = new QGridLayout;
    grid->setColumnStretch(1, 1);
    grid->addWidget(m_labels[0], 0, 0, Qt::AlignTop);
    grid->addWidget(m_text, 0, 1);
    grid->addWidget(m_labels[1], 1, 0);
    grid->addWidget(m_system, 1, 1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(grid);
    layout->addLayout(figures);
}

Prompt TryForm::prompt() const
{
    Prompt prompt;
    prompt.text = m_text->toPlainText().toStdString();
    prompt.system = m_system->text().toStdString();
    prompt.form = PromptForm::ChatIfAny;
    prompt.maxTokens = m_maxTokens->value();
    prompt.temperature = m_temperature->value();
    prompt.topP = m_topP->value();
    prompt.seed = static_cast<std::uint64_t>(m_seed->value());
    return prompt;
}

void TryForm::setText(const QString& text)
{
    m_text->setPlainText(text);
}

void TryForm::setBusy(bool busy)
{
    m_busy = busy;
    enable();
}

void TryForm::setAskable(bool askable)
{
    m_askable = askable;
    enable();
}

void TryForm::enable()
{
    m_ask->setEnabled(!m_busy && m_askable && !m_text->document()->isEmpty());
    m_stop->setEnabled(m_busy);
}

void TryForm::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void TryForm::retranslateUi()
{
    const std::array<QString, 6> words = {tr("Prompt"), tr("System text"), tr("Temperature"),
        tr("Top-p"), tr("Most tokens"), tr("Seed")};
    for (std::size_t i = 0; i < words.size(); ++i) {
        m_labels.at(i)->setText(words.at(i));
        m_labels.at(i)->buddy()->setAccessibleName(words.at(i));
    }
    m_text->setPlaceholderText(tr("Prompt for both models"));
    m_system->setPlaceholderText(tr("Optional: how the model shall answer"));
    m_temperature->setToolTip(tr("0: always the most likely token"));
    m_topP->setToolTip(tr("The share of probability that is kept"));
    m_seed->setToolTip(tr("Equal seeds give equal answers"));
    m_ask->setText(tr("Ask"));
    m_ask->setToolTip(tr("Ask both, one after the other (Ctrl+Return)"));
    m_stop->setText(tr("Stop"));
    m_stop->setToolTip(tr("Stop answering (Esc)"));
}

} // namespace mr::ui
