#include "widgets/progress_line.h"

#include "text/units.h"

#include <QLabel>
#include <QProgressBar>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kBarParts = 1000;

} // namespace

ProgressLine::ProgressLine(const QString& name, QWidget* parent)
    : QWidget(parent)
    , m_bar(new QProgressBar)
    , m_text(new QLabel)
{
    m_bar->setRange(0, kBarParts);
    m_bar->setTextVisible(false);
    m_bar->setAccessibleName(name);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_bar);
    layout->addWidget(m_text);
    hide();
}

void ProgressLine::begin()
{
    m_begun.start();
    m_bar->setValue(0);
    m_text->clear();
    show();
}

void ProgressLine::setDone(std::uint64_t done, std::uint64_t all, const QString& more)
{
    const auto part = static_cast<double>(done);
    const auto whole = static_cast<double>(all);
    m_bar->setValue(all == 0 ? 0 : static_cast<int>(kBarParts * part / whole));
    QString text = tr("%1 of %2").arg(memoryText(part), memoryText(whole));
    if (!more.isEmpty())
        text = tr("%1, %2", "parts of a line").arg(text, more);
    if (done > 0 && done < all) {
        const double seconds = static_cast<double>(m_begun.elapsed()) / 1000.0;
        text = tr("%1, %2 left").arg(text, durationText(seconds * (whole - part) / part));
    }
    m_text->setText(text);
}

} // namespace mr::ui
