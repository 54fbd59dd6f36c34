// What each policy does in each order of work, as text.

#include "core/plan/plan_text.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

using namespace mr;
using namespace mr::test;

namespace {

QString textOf(const StepPlan& plan)
{
    return QString::fromStdString("\n" + toText(plan));
}

BuiltStep step7(const OffloadPolicy& policy, int blocks, int microBatches)
{
    Result<BuiltStep> built =
        buildPlan(specOf(7, microBatches), carryOf(6), smallShape(blocks), endless(), {}, policy);
    return built.ok() ? std::move(built).value() : BuiltStep{};
}

} // namespace

class TestPlanText : public QObject
{
    Q_OBJECT

private slots:
    void residentOneMicroBatch()
    {
        const BuiltStep built = step7(policyOf("resident", "by-microbatch"), 2, 1);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 Forward Compute g1 m0 [0,4096) v6
3 Forward Compute g2 m0 [0,4096) v6
4 Backward Compute g3 m0 [0,4096) v6
5 FinishGradient Compute g3 [0,4096) v7
6 NormPart Compute g3 [0,4096) v7
7 Backward Compute g2 m0 [0,4096) v6
8 FinishGradient Compute g2 [0,4096) v7
9 NormPart Compute g2 [0,4096) v7
10 Backward Compute g1 m0 [0,4096) v6
11 FinishGradient Compute g1 [0,4096) v7
12 NormPart Compute g1 [0,4096) v7
13 Backward Compute g0 m0 [0,4096) v6
14 FinishGradient Compute g0 [0,4096) v7
15 NormPart Compute g0 [0,4096) v7
16 JoinNorm Compute v7
17 SendScalars CopyOut v7 <- 16
18 UpdateOnDevice Compute g0 [0,4096) v7
19 UpdateOnDevice Compute g1 [0,4096) v7
20 UpdateOnDevice Compute g2 [0,4096) v7
21 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void residentTwoMicroBatches()
    {
        const BuiltStep built = step7(policyOf("resident", "by-microbatch"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g1 m0 [0,4096) v6
4 Forward Compute g2 m0 [0,4096) v6
5 Backward Compute g3 m0 [0,4096) v6
6 Backward Compute g2 m0 [0,4096) v6
7 Backward Compute g1 m0 [0,4096) v6
8 Backward Compute g0 m0 [0,4096) v6
9 Forward Compute g0 m1 [0,4096) v6 <- 1
10 Forward Compute g1 m1 [0,4096) v6
11 Forward Compute g2 m1 [0,4096) v6
12 Backward Compute g3 m1 [0,4096) v6
13 FinishGradient Compute g3 [0,4096) v7
14 NormPart Compute g3 [0,4096) v7
15 Backward Compute g2 m1 [0,4096) v6
16 FinishGradient Compute g2 [0,4096) v7
17 NormPart Compute g2 [0,4096) v7
18 Backward Compute g1 m1 [0,4096) v6
19 FinishGradient Compute g1 [0,4096) v7
20 NormPart Compute g1 [0,4096) v7
21 Backward Compute g0 m1 [0,4096) v6
22 FinishGradient Compute g0 [0,4096) v7
23 NormPart Compute g0 [0,4096) v7
24 JoinNorm Compute v7
25 SendScalars CopyOut v7 <- 24
26 UpdateOnDevice Compute g0 [0,4096) v7
27 UpdateOnDevice Compute g1 [0,4096) v7
28 UpdateOnDevice Compute g2 [0,4096) v7
29 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void zeroOffloadOneMicroBatch()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-microbatch"), 2, 1);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 Forward Compute g0 m0 [0,4096) v6 <- 0
2 Forward Compute g1 m0 [0,4096) v6
3 Forward Compute g2 m0 [0,4096) v6
4 Backward Compute g3 m0 [0,4096) v6
5 FinishGradient Compute g3 [0,4096) v7
6 SendGradient CopyOut g3 [0,4096) v7 <- 5
7 NormPart Compute g3 [0,4096) v7
8 Backward Compute g2 m0 [0,4096) v6
9 FinishGradient Compute g2 [0,4096) v7
10 SendGradient CopyOut g2 [0,4096) v7 <- 9
11 NormPart Compute g2 [0,4096) v7
12 Backward Compute g1 m0 [0,4096) v6
13 FinishGradient Compute g1 [0,4096) v7
14 SendGradient CopyOut g1 [0,4096) v7 <- 13
15 NormPart Compute g1 [0,4096) v7
16 Backward Compute g0 m0 [0,4096) v6
17 FinishGradient Compute g0 [0,4096) v7
18 SendGradient CopyOut g0 [0,4096) v7 <- 17
19 NormPart Compute g0 [0,4096) v7
20 JoinNorm Compute v7
21 SendScalars CopyOut v7 <- 20
22 UpdateOnHost Host g0 [0,4096) v7 <- 21
23 FetchWeights CopyIn g0 [0,4096) v7 <- 22
24 UpdateOnHost Host g1 [0,4096) v7
25 FetchWeights CopyIn g1 [0,4096) v7 <- 24
26 UpdateOnHost Host g2 [0,4096) v7
27 FetchWeights CopyIn g2 [0,4096) v7 <- 26
28 UpdateOnHost Host g3 [0,4096) v7
29 FetchWeights CopyIn g3 [0,4096) v7 <- 28
)"));
    }

    void zeroOffloadTwoMicroBatches()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-microbatch"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g1 m0 [0,4096) v6
4 Forward Compute g2 m0 [0,4096) v6
5 Backward Compute g3 m0 [0,4096) v6
6 Backward Compute g2 m0 [0,4096) v6
7 Backward Compute g1 m0 [0,4096) v6
8 Backward Compute g0 m0 [0,4096) v6
9 Forward Compute g0 m1 [0,4096) v6 <- 1
10 Forward Compute g1 m1 [0,4096) v6
11 Forward Compute g2 m1 [0,4096) v6
12 Backward Compute g3 m1 [0,4096) v6
13 FinishGradient Compute g3 [0,4096) v7
14 SendGradient CopyOut g3 [0,4096) v7 <- 13
15 NormPart Compute g3 [0,4096) v7
16 Backward Compute g2 m1 [0,4096) v6
17 FinishGradient Compute g2 [0,4096) v7
18 SendGradient CopyOut g2 [0,4096) v7 <- 17
19 NormPart Compute g2 [0,4096) v7
20 Backward Compute g1 m1 [0,4096) v6
21 FinishGradient Compute g1 [0,4096) v7
22 SendGradient CopyOut g1 [0,4096) v7 <- 21
23 NormPart Compute g1 [0,4096) v7
24 Backward Compute g0 m1 [0,4096) v6
25 FinishGradient Compute g0 [0,4096) v7
26 SendGradient CopyOut g0 [0,4096) v7 <- 25
27 NormPart Compute g0 [0,4096) v7
28 JoinNorm Compute v7
29 SendScalars CopyOut v7 <- 28
30 UpdateOnHost Host g0 [0,4096) v7 <- 29
31 FetchWeights CopyIn g0 [0,4096) v7 <- 30
32 UpdateOnHost Host g1 [0,4096) v7
33 FetchWeights CopyIn g1 [0,4096) v7 <- 32
34 UpdateOnHost Host g2 [0,4096) v7
35 FetchWeights CopyIn g2 [0,4096) v7 <- 34
36 UpdateOnHost Host g3 [0,4096) v7
37 FetchWeights CopyIn g3 [0,4096) v7 <- 36
)"));
    }

    void residentByLayer()
    {
        const BuiltStep built = step7(policyOf("resident", "by-layer"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m0 [0,4096) v6
5 Forward Compute g1 m1 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m0 [0,4096) v6
9 Backward Compute g3 m1 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 NormPart Compute g3 [0,4096) v7
12 Backward Compute g2 m0 [0,4096) v6
13 Backward Compute g2 m1 [0,4096) v6
14 FinishGradient Compute g2 [0,4096) v7
15 NormPart Compute g2 [0,4096) v7
16 Backward Compute g1 m0 [0,4096) v6
17 Backward Compute g1 m1 [0,4096) v6
18 FinishGradient Compute g1 [0,4096) v7
19 NormPart Compute g1 [0,4096) v7
20 Backward Compute g0 m0 [0,4096) v6
21 Backward Compute g0 m1 [0,4096) v6
22 FinishGradient Compute g0 [0,4096) v7
23 NormPart Compute g0 [0,4096) v7
24 JoinNorm Compute v7
25 SendScalars CopyOut v7 <- 24
26 UpdateOnDevice Compute g0 [0,4096) v7
27 UpdateOnDevice Compute g1 [0,4096) v7
28 UpdateOnDevice Compute g2 [0,4096) v7
29 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void zeroOffloadByLayer()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-layer"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m0 [0,4096) v6
5 Forward Compute g1 m1 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m0 [0,4096) v6
9 Backward Compute g3 m1 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 SendGradient CopyOut g3 [0,4096) v7 <- 10
12 NormPart Compute g3 [0,4096) v7
13 Backward Compute g2 m0 [0,4096) v6
14 Backward Compute g2 m1 [0,4096) v6
15 FinishGradient Compute g2 [0,4096) v7
16 SendGradient CopyOut g2 [0,4096) v7 <- 15
17 NormPart Compute g2 [0,4096) v7
18 Backward Compute g1 m0 [0,4096) v6
19 Backward Compute g1 m1 [0,4096) v6
20 FinishGradient Compute g1 [0,4096) v7
21 SendGradient CopyOut g1 [0,4096) v7 <- 20
22 NormPart Compute g1 [0,4096) v7
23 Backward Compute g0 m0 [0,4096) v6
24 Backward Compute g0 m1 [0,4096) v6
25 FinishGradient Compute g0 [0,4096) v7
26 SendGradient CopyOut g0 [0,4096) v7 <- 25
27 NormPart Compute g0 [0,4096) v7
28 JoinNorm Compute v7
29 SendScalars CopyOut v7 <- 28
30 UpdateOnHost Host g0 [0,4096) v7 <- 29
31 FetchWeights CopyIn g0 [0,4096) v7 <- 30
32 UpdateOnHost Host g1 [0,4096) v7
33 FetchWeights CopyIn g1 [0,4096) v7 <- 32
34 UpdateOnHost Host g2 [0,4096) v7
35 FetchWeights CopyIn g2 [0,4096) v7 <- 34
36 UpdateOnHost Host g3 [0,4096) v7
37 FetchWeights CopyIn g3 [0,4096) v7 <- 36
)"));
    }

    void residentByLayerFlip()
    {
        const BuiltStep built = step7(policyOf("resident", "by-layer-flip"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m1 [0,4096) v6
5 Forward Compute g1 m0 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m1 [0,4096) v6
9 Backward Compute g3 m0 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 NormPart Compute g3 [0,4096) v7
12 Backward Compute g2 m0 [0,4096) v6
13 Backward Compute g2 m1 [0,4096) v6
14 FinishGradient Compute g2 [0,4096) v7
15 NormPart Compute g2 [0,4096) v7
16 Backward Compute g1 m1 [0,4096) v6
17 Backward Compute g1 m0 [0,4096) v6
18 FinishGradient Compute g1 [0,4096) v7
19 NormPart Compute g1 [0,4096) v7
20 Backward Compute g0 m0 [0,4096) v6
21 Backward Compute g0 m1 [0,4096) v6
22 FinishGradient Compute g0 [0,4096) v7
23 NormPart Compute g0 [0,4096) v7
24 JoinNorm Compute v7
25 SendScalars CopyOut v7 <- 24
26 UpdateOnDevice Compute g0 [0,4096) v7
27 UpdateOnDevice Compute g1 [0,4096) v7
28 UpdateOnDevice Compute g2 [0,4096) v7
29 UpdateOnDevice Compute g3 [0,4096) v7
)"));
    }

    void zeroOffloadByLayerFlip()
    {
        const BuiltStep built = step7(policyOf("zero-offload", "by-layer-flip"), 2, 2);

        QCOMPARE(textOf(built.plan), QStringLiteral(R"(
0 FetchBatch CopyIn m0 v7
1 FetchBatch CopyIn m1 v7
2 Forward Compute g0 m0 [0,4096) v6 <- 0
3 Forward Compute g0 m1 [0,4096) v6 <- 1
4 Forward Compute g1 m1 [0,4096) v6
5 Forward Compute g1 m0 [0,4096) v6
6 Forward Compute g2 m0 [0,4096) v6
7 Forward Compute g2 m1 [0,4096) v6
8 Backward Compute g3 m1 [0,4096) v6
9 Backward Compute g3 m0 [0,4096) v6
10 FinishGradient Compute g3 [0,4096) v7
11 SendGradient CopyOut g3 [0,4096) v7 <- 10
12 NormPart Compute g3 [0,4096) v7
13 Backward Compute g2 m0 [0,4096) v6
14 Backward Compute g2 m1 [0,4096) v6
15 FinishGradient Compute g2 [0,4096) v7
16 SendGradient CopyOut g2 [0,4096) v7 <- 15
17 NormPart Compute g2 [0,4096) v7
18 Backward Compute g1 m1 [0,4096) v6
19 Backward Compute g1 m0 [0,4096) v6
20 FinishGradient Compute g1 [0,4096) v7
21 SendGradient CopyOut g1 [0,4096) v7 <- 20
22 NormPart Compute g1 [0,4096) v7
23 Backward Compute g0 m0 [0,4096) v6
24 Backward Compute g0 m1 [0,4096) v6
25 FinishGradient Compute g0 [0,4096) v7
26 SendGradient CopyOut g0 [0,4096) v7 <- 25
27 NormPart Compute g0 [0,4096) v7
28 JoinNorm Compute v7
29 SendScalars CopyOut v7 <- 28
30 UpdateOnHost Host g0 [0,4096) v7 <- 29
31 FetchWeights CopyIn g0 [0,4096) v7 <- 30
32 UpdateOnHost Host g1 [0,4096) v7
33 FetchWeights CopyIn g1 [0,4096) v7 <- 32
34 UpdateOnHost Host g2 [0,4096) v7
35 FetchWeights CopyIn g2 [0,4096) v7 <- 34
36 UpdateOnHost Host g3 [0,4096) v7
37 FetchWeights CopyIn g3 [0,4096) v7 <- 36
)"));
    }
};

QTEST_APPLESS_MAIN(TestPlanText)
#include "tst_plan_text.moc"
