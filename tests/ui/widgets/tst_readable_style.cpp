// Frames and the focus of every kind of control can be seen, in both themes.

#include "support/test_room.h"
#include "text/theme_colors.h"
#include "widgets/readable_style.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QImage>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QSpinBox>
#include <QTableWidget>
#include <QTest>
#include <QToolButton>

namespace mr::test::tst_readable_style {

using namespace mr::ui;

namespace {

constexpr double kVisible = 3.0; // WCAG 2.1, 1.4.11
constexpr QPoint kAt(20, 20);

using Maker = std::function<QWidget*(QWidget*)>;

template <typename Control>
QWidget* make(QWidget* parent)
{
    return new Control(parent);
}

QWidget* makeTable(QWidget* parent)
{
    auto* table = new QTableWidget(2, 1, parent);
    table->setCurrentCell(0, 0);
    return table;
}

void eachControl(const std::vector<std::pair<const char*, Maker>>& controls)
{
    QTest::addColumn<Maker>("maker");
    QTest::addColumn<bool>("dark");
    for (const auto& [name, maker] : controls)
        for (const bool dark : {false, true})
            QTest::addRow("%s, %s", name, dark ? "dark" : "light") << maker << dark;
}

// The control on a card, in a window that has the focus of the keyboard.
class OnCard
{
public:
    OnCard(const Maker& maker, bool dark)
    {
        QPalette palette = themePalette(dark);
        palette.setColor(QPalette::Window, themeColors(palette).card);
        m_window.setPalette(palette);
        m_other = new QLineEdit(&m_window);
        m_other->setGeometry(150, 150, 40, 20);
        m_control = maker(&m_window);
        m_control->setGeometry(QRect(kAt, QSize(100, 30)));
        m_window.resize(200, 200);
        m_window.show();
        m_window.activateWindow();
        m_other->setFocus();
    }

    QWidget* window() { return &m_window; }
    QWidget* control() { return m_control; }

    QImage picture()
    {
        QCoreApplication::processEvents();
        return m_window.grab().toImage().convertToFormat(QImage::Format_RGB32);
    }

private:
    QWidget m_window;
    QLineEdit* m_other;
    QWidget* m_control;
};

} // namespace

class TestReadableStyle : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        m_style = new ReadableStyle;
        QApplication::setStyle(m_style);
    }

    void frameCanBeSeen_data()
    {
        eachControl({{"check box", make<QCheckBox>}, {"radio button", make<QRadioButton>},
            {"field", make<QLineEdit>}, {"number", make<QSpinBox>},
            {"fraction", make<QDoubleSpinBox>}, {"choice", make<QComboBox>},
            {"text", make<QPlainTextEdit>}});
    }

    void frameCanBeSeen()
    {
        QFETCH(const Maker, maker);
        QFETCH(const bool, dark);
        OnCard card(maker, dark);

        const QImage picture = card.picture();

        // Along the middle of the left edge.
        const QColor ground = themeColors(themePalette(dark)).card;
        double most = 1.0;
        for (int x = kAt.x(); x < kAt.x() + 4; ++x)
            most = std::max(most, contrastRatio(picture.pixelColor(x, kAt.y() + 15), ground));
        QVERIFY2(most >= kVisible - 0.05, qPrintable(QString::number(most))); // of smooth edges
    }

    void focusCanBeSeen_data()
    {
        eachControl({{"check box", make<QCheckBox>}, {"radio button", make<QRadioButton>},
            {"field", make<QLineEdit>}, {"number", make<QSpinBox>}, {"choice", make<QComboBox>},
            {"text", make<QPlainTextEdit>}, {"button", make<QPushButton>},
            {"tool", make<QToolButton>}, {"table", makeTable}});
    }

    void focusCanBeSeen()
    {
        QFETCH(const Maker, maker);
        QFETCH(const bool, dark);
        OnCard card(maker, dark);
        QVERIFY(QTest::qWaitForWindowActive(card.window()));
        card.control()->setFocusPolicy(Qt::StrongFocus);
        if (auto* button = qobject_cast<QAbstractButton*>(card.control()))
            button->setText("Text");
        const QImage before = card.picture();

        card.control()->setFocus(Qt::TabFocusReason);
        QTest::keyClick(card.window(), Qt::Key_Shift); // as a key that was pressed
        card.window()->setAttribute(Qt::WA_KeyboardFocusChange);
        const QImage after = card.picture();

        int changed = 0;
        for (int y = kAt.y(); y < kAt.y() + 30; ++y)
            for (int x = kAt.x(); x < kAt.x() + 100; ++x)
                if (contrastRatio(before.pixelColor(x, y), after.pixelColor(x, y)) >= kVisible)
                    ++changed;
        QVERIFY2(changed >= 60, qPrintable(QString::number(changed))); // a line around it
    }

    void aFrameOfADisabledControlStepsBack()
    {
        OnCard card(make<QLineEdit>, false);
        const QImage on = card.picture();

        card.control()->setEnabled(false);

        QVERIFY(card.picture() != on);
    }

    void motionIsOffOnRequest()
    {
        m_style->setMotion(false);
        QCOMPARE(
            m_style->styleHint(QStyle::SH_Widget_Animation_Duration, nullptr, nullptr, nullptr), 0);
        m_style->setMotion(true);
        QCOMPARE(
            m_style->styleHint(QStyle::SH_Widget_Animation_Duration, nullptr, nullptr, nullptr),
            m_style->baseStyle()->styleHint(QStyle::SH_Widget_Animation_Duration));
    }

private:
    ReadableStyle* m_style = nullptr;
};

MR_TEST_WITH_WINDOWS(TestReadableStyle)

} // namespace mr::test::tst_readable_style

#include "tst_readable_style.moc"
