// The words of DatasetSection in the language of the window.

#include "charts/legend.h"
#include "pages/dataset_section.h"
#include "text/format.h"
#include "text/theme_colors.h"
#include "text/units.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QCheckBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>

#include <algorithm>
#include <numeric>

namespace mr::ui {

namespace {

using Counts = std::map<std::string, std::int64_t>;

QString listOf(const std::vector<std::string>& names)
{
    constexpr std::size_t kMostNames = 12;
    constexpr int kMostCharacters = 60;
    QStringList shown;
    for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
        shown << QString::fromStdString(names[i]).left(kMostCharacters);
    return shown.join(QStringLiteral(", ")) +
           (names.size() > kMostNames ? QStringLiteral(", …") : QString());
}

int sum(const Counts& counts)
{
    return static_cast<int>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
        [](std::int64_t n, const auto& count) { return n + count.second; }));
}

// "not JSON: 3, not UTF-8: 1"
QString reasonsOf(const Counts& counts)
{
    using Section = DatasetSection;
    const std::map<std::string, QString> words{{"json", Section::tr("not valid JSON")},
        {"utf8", Section::tr("not valid UTF-8")}, {"nul", Section::tr("a byte of value 0")},
        {"shape", Section::tr("not built like the rows before")},
        {"cells", Section::tr("more or fewer cells than the first row")},
        {"columns", Section::tr("its columns do not hold what is needed")},
        {"template", Section::tr("the chat template cannot write it")}};
    QStringList shown;
    for (const auto& [reason, count] : counts) {
        const auto found = words.find(reason);
        shown << Section::tr("%1: %2").arg(
            found == words.end() ? QString::fromStdString(reason) : found->second,
            countText(count));
    }
    return shown.join(QStringLiteral(", "));
}

QString refusedText(const RefusedRows& rows)
{
    const int count = sum(rows.counts);
    const QString text =
        rows.isAll ? DatasetSection::tr("%n row(s) cannot be read (%1).", nullptr, count)
                   : DatasetSection::tr("At least %n row(s) cannot be read (%1).", nullptr, count);
    return text.arg(reasonsOf(rows.counts)) + QLatin1Char('\n') +
           DatasetSection::tr("The first: %1").arg(QString::fromStdString(rows.first));
}

// Answers that would unlearn thinking, and switches that nobody reads; empty: there are none.
QString thinkingText(const DatasetInfo& info)
{
    QStringList lines;
    if (info.emptyThoughts > 0)
        lines << DatasetSection::tr("%1 of the answers have an empty thought. A model trained on "
                                    "thousands of such rows unlearns to think.")
                     .arg(percentText(100.0 * static_cast<double>(info.emptyThoughts) /
                                      static_cast<double>(info.answers)));
    if (info.unreadSwitches > 0)
        lines << DatasetSection::tr("%n row(s) hold /no_think, which this model does not know: it "
                                    "is read as a word of the question.",
            nullptr, static_cast<int>(info.unreadSwitches));
    return lines.join(QLatin1Char('\n'));
}

} // namespace

// Refusals that can be mended on this page are worded for it.
bool DatasetSection::showWayOut()
{
    QStringList lines;
    if (const QString text = wayOut(); !text.isEmpty())
        lines << text;
    const bool isOnlyThat = m_info->problems.size() == 1;
    if (!m_info->rowsRefused.counts.empty() && (!lines.isEmpty() || isOnlyThat))
        lines << refusedText(m_info->rowsRefused);
    if (lines.isEmpty())
        return false;
    m_message->show(MessageLabel::Kind::Warning, lines.join(QLatin1Char('\n')));
    return true;
}

QString DatasetSection::wayOut() const
{
    switch (m_info->refusal) {
    case DataRefusal::UnknownColumns:
        return tr(
            "The names of the columns do not tell which of them hold what. Choose them here.");
    case DataRefusal::Preferences:
        return tr("This file holds preferences: answers that are to be compared, good and bad. "
                  "They cannot be trained as such. To train the good answers alone, choose their "
                  "columns here.");
    case DataRefusal::NoTemplate:
        return tr("This file holds conversations, and the model has no chat template: it does not "
                  "know how they are written. Choose one to teach it; it is saved with the trained "
                  "model.");
    case DataRefusal::None:
    case DataRefusal::BadAnswers:
    case DataRefusal::Media:
    case DataRefusal::Untrainable:
        break;
    }
    return {};
}

// One line: the rows and padding that packing saves, or the padding without it.
void DatasetSection::showPacking()
{
    if (!m_info || m_info->packedRows == 0)
        return m_packMessage->clear();
    const std::int64_t inputs = m_info->tokens - m_info->sequences;
    const double alone = paddingShare(inputs, m_info->sequences, m_info->seqLen);
    const double packed = paddingShare(inputs, m_info->packedRows, m_info->seqLen);
    const QString line = !pack() && isMostlyPadded(alone)
                             ? tr("%4 of every step is padding. Packed: rows %1 instead of %2, %3 "
                                  "padding.")
                             : tr("Rows %1 instead of %2, %3 padding instead of %4.");
    m_packMessage->show(MessageLabel::Kind::Info,
        line.arg(countText(m_info->packedRows), countText(m_info->sequences),
            percentText(100.0 * packed), percentText(100.0 * alone)));
}

void DatasetSection::showInfo()
{
    if (m_info->problems.empty()) {
        const bool doubtful = m_info->cutRows > 0 || m_info->emptyRows > 0 ||
                              m_info->emptyThoughts > 0 || m_info->unreadSwitches > 0 ||
                              !m_info->notes.empty() || !m_info->rowsSkipped.empty();
        m_message->show(
            doubtful ? MessageLabel::Kind::Warning : MessageLabel::Kind::Good, summary(*m_info));
        return;
    }
    QStringList lines;
    for (const std::string& problem : m_info->problems)
        lines << QString::fromStdString(problem);
    m_message->showLines(MessageLabel::Kind::Error, lines);
}

QString DatasetSection::summary(const DatasetInfo& info) const
{
    QStringList lines;
    lines << tr("%1 rows, %2 sequences, %3")
                 .arg(countText(info.rows), countText(info.sequences),
                     memoryText(static_cast<double>(info.bytes)));
    if (info.tokens > 0)
        lines << tr("%1 tokens, %2 of them trained (%3)")
                     .arg(countText(info.tokens), countText(info.trainedTokens),
                         percentText(100.0 * static_cast<double>(info.trainedTokens) /
                                     static_cast<double>(info.tokens)));
    if (info.cutRows > 0)
        lines << tr("%n row(s) are longer than the sequence length and are cut.", nullptr,
            static_cast<int>(info.cutRows));
    if (!info.unusedColumns.empty())
        lines << tr("Columns that are not used: %1").arg(listOf(info.unusedColumns));
    if (info.emptyRows > 0)
        lines << tr("%n row(s) have nothing to train and are skipped.", nullptr,
            static_cast<int>(info.emptyRows));
    if (info.rowsExcluded > 0)
        lines << tr("%n row(s) are excluded.", nullptr, static_cast<int>(info.rowsExcluded));
    if (!info.rowsSkipped.empty())
        lines << tr(
            "%n row(s) cannot be read and are left out (%1).", nullptr, sum(info.rowsSkipped))
                     .arg(reasonsOf(info.rowsSkipped));
    if (const QString thinking = thinkingText(info); !thinking.isEmpty())
        lines << thinking;
    for (const std::string& note : info.notes)
        lines << QString::fromStdString(note);
    return lines.join(QLatin1Char('\n'));
}

void DatasetSection::retranslateUi()
{
    m_card->setTitle(tr("Data"));
    m_label->setText(tr("Training &file"));
    m_path->setTexts(tr("Training file"), tr("JSONL, JSON, CSV or plain text. Drop it here."));
    m_skip->setText(tr("Leave o&ut rows that cannot be read"));
    m_skip->setToolTip(tr("The folder of the run lists them with the reason, in skipped.jsonl."));
    m_check->setText(tr("Check the rows…"));
    m_check->setToolTip(
        tr("Looks at every row: those that train nothing, are cut, repeat others or "
           "stand in the evaluation file can be left out."));
    m_pack->setText(tr("Pac&k short sequences"));
    m_pack->setToolTip(
        tr("Several share a row and none sees another: fewer steps in an epoch, more "
           "sequences in each, so that another learning rate may suit."));
    m_evalLabel->setText(tr("&Evaluation file (optional)"));
    m_evalPath->setTexts(tr("Evaluation file"),
        tr("Empty: 5 % of the training sequences are held out, at most 200"));
    m_previewTitle->setText(tr("First rows as the model sees them"));
    m_previewArea->setAccessibleName(tr("First rows of the dataset as tokens"));
    m_legend->setEntries({{tr("Trained: part of the loss"), {}, Legend::Mark::Box,
                              [](const QPalette& p) { return themeColors(p).good; }},
        {tr("Masked: read, not part of the loss"), {}, Legend::Mark::Box,
            [](const QPalette& p) { return themeColors(p).border; }}});
    if (m_info) {
        showInfo();
        showPacking();
    } else if (!path().isEmpty()) {
        m_delay.start(); // inspects again: the error was made in the old language
    }
}

} // namespace mr::ui
