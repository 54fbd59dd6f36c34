#include "pages/reading_choice.h"

#include "widgets/card.h"

#include <QButtonGroup>
#include <QEvent>
#include <QLabel>
#include <QRadioButton>
#include <QStyle>
#include <QVBoxLayout>

#include <algorithm>
#include <initializer_list>

namespace mr::ui {

namespace {

constexpr int kReadingGap = 8; // below each, so that a first row lies close to its button

constexpr int kMostDescribed = 90; // characters of a description; the tip has all of it

using Mapping = ReadingChoice::Mapping;

// The columns in `mapping` for those of the `roles` that it names.
QString joined(
    const Mapping& mapping, std::initializer_list<const char*> roles, const QString& between)
{
    QStringList found;
    for (const char* role : roles)
        if (const auto one = mapping.find(role); one != mapping.end())
            found << QString::fromStdString(one->second);
    return found.join(between);
}

// "question → answer", "body as plain text"
QString description(const Mapping& mapping)
{
    const QString text = joined(mapping, {"text"}, {});
    if (!text.isEmpty())
        return ReadingChoice::tr("%1 as plain text").arg(text);
    const QString messages = joined(mapping, {"messages"}, {});
    QString out = ReadingChoice::tr("%1 as a conversation").arg(messages);
    if (messages.isEmpty())
        out = QStringLiteral("%1 → %2").arg(
            joined(mapping, {"prompt", "input"}, QStringLiteral(" + ")),
            joined(mapping, {"response"}, {}));
    const QString besides = joined(mapping, {"system", "history", "tools"}, QStringLiteral(", "));
    return besides.isEmpty() ? out : ReadingChoice::tr("%1, with %2").arg(out, besides);
}

// A line for each part of the row.
QString firstRowText(const Mapping& texts)
{
    QStringList lines;
    const auto add = [&](const QString& line, std::initializer_list<const char*> roles) {
        const QString found = joined(texts, roles, QStringLiteral(" + "));
        if (!found.isEmpty())
            lines << line.arg(found);
    };
    add(ReadingChoice::tr("System prompt: %1"), {"system"});
    add(ReadingChoice::tr("Prompt: %1"), {"prompt", "input"});
    add(ReadingChoice::tr("Response: %1"), {"response"});
    add(ReadingChoice::tr("Text: %1"), {"text"});
    add(ReadingChoice::tr("Conversation: %1"), {"messages"});
    return lines.join(QLatin1Char('\n'));
}

} // namespace

ReadingChoice::ReadingChoice(QWidget* parent)
    : QWidget(parent)
    , m_layout(new QVBoxLayout(this))
    , m_title(new QLabel(this))
    , m_group(new QButtonGroup(this))
{
    setObjectName(QStringLiteral("readings"));
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(0);
    m_layout->addWidget(m_title);
    m_title->setContentsMargins(0, 0, 0, kReadingGap / 2);
    retranslateUi();
    hide();
}

void ReadingChoice::setReadings(const std::vector<DataReading>& readings)
{
    const bool isSame = std::equal(readings.begin(), readings.end(), m_rows.begin(), m_rows.end(),
        [](const DataReading& reading, const Row& row) {
            return reading.mapping == row.reading.mapping &&
                   reading.firstTexts == row.reading.firstTexts;
        });
    if (isSame)
        return; // looking at the file again must not take the focus away
    for (const Row& row : m_rows) {
        m_group->removeButton(row.button);
        for (QWidget* widget :
            {static_cast<QWidget*>(row.button), static_cast<QWidget*>(row.firstRow)}) {
            widget->hide();
            widget->deleteLater(); // the signal of a button may be under way
        }
    }
    m_rows.clear();
    for (const DataReading& reading : readings)
        m_rows.push_back(makeRow(reading));
    retranslateUi();
    setVisible(!m_rows.empty());
}

ReadingChoice::Row ReadingChoice::makeRow(const DataReading& reading)
{
    Row row{reading, new QRadioButton(this), makeMutedLabel(this)};
    row.firstRow->setTextFormat(Qt::PlainText); // text of a file is never markup
    const int indent = style()->pixelMetric(QStyle::PM_ExclusiveIndicatorWidth) +
                       style()->pixelMetric(QStyle::PM_RadioButtonLabelSpacing);
    row.firstRow->setContentsMargins(indent, 0, 0, kReadingGap);
    row.button->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_group->addButton(row.button);
    m_layout->addWidget(row.button);
    m_layout->addWidget(row.firstRow);
    connect(row.button, &QRadioButton::clicked, this,
        [this, mapping = reading.mapping] { emit chosen(mapping); });
    return row;
}

void ReadingChoice::setChosen(const std::optional<Mapping>& mapping)
{
    m_group->setExclusive(false); // else none cannot be marked
    for (const Row& row : m_rows)
        row.button->setChecked(mapping && row.reading.mapping == *mapping);
    m_group->setExclusive(true);
}

QRadioButton* ReadingChoice::button(int index) const
{
    return m_rows.at(static_cast<std::size_t>(index)).button;
}

QString ReadingChoice::firstRow(int index) const
{
    return m_rows.at(static_cast<std::size_t>(index)).firstRow->text();
}

QWidget* ReadingChoice::follow(QWidget* before) const
{
    for (const Row& row : m_rows) {
        setTabOrder(before, row.button);
        before = row.button;
    }
    return before;
}

void ReadingChoice::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void ReadingChoice::retranslateUi()
{
    m_title->setText(tr("Likely readings, each with the first row as it would be trained:"));
    for (const Row& row : m_rows) {
        QString words = description(row.reading.mapping);
        const QString firstRow = firstRowText(row.reading.firstTexts);
        row.button->setAccessibleName(words);
        row.button->setToolTip(words.toHtmlEscaped());
        if (words.size() > kMostDescribed)
            words = words.left(kMostDescribed) + QStringLiteral("…");
        row.button->setAccessibleDescription(firstRow);
        row.button->setText(words.replace(QLatin1Char('&'), QLatin1String("&&")));
        row.firstRow->setText(firstRow);
        row.firstRow->setVisible(!firstRow.isEmpty());
    }
}

} // namespace mr::ui
