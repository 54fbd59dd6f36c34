// How products are put to cuBLASLt, over a fake library that computes as its documentation says.

#include "core/prove/conformance_fp8.h"
#include "gpu/add_bias.h"
#include "gpu/cublaslt_gemm.h"
#include "gpu/runtime/fake_cublaslt.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QTest>

#include <bit>
#include <vector>

namespace mr::gpu {

// The kernel's place: out is F32 here, the bias BF16 or F32.
Status launchAddBias(const TensorView& out, const TensorView& bias, bool add, cudaStream_t stream)
{
    (void)cudaStreamSynchronize(stream);
    for (std::int64_t i = 0; i < out.count(); ++i) {
        const std::int64_t col = i % bias.count();
        const float b =
            bias.dtype == DType::F32
                ? bias.as<float>()[col]
                : std::bit_cast<float>(std::uint32_t{bias.as<std::uint16_t>()[col]} << 16);
        out.as<float>()[i] = add ? out.as<float>()[i] + b : b;
    }
    return {};
}

} // namespace mr::gpu

namespace mr::test::tst_gemm {

using namespace mr::gpu;

namespace {

constexpr std::int64_t kM = 3;
constexpr std::int64_t kN = 5;
constexpr std::int64_t kK = 4;

struct Matrix {
    Matrix(std::int64_t rows, std::int64_t cols, int seed)
        : values(static_cast<std::size_t>(rows * cols))
        , view(matrixView(reinterpret_cast<std::byte*>(values.data()), DType::F32, rows, cols))
    {
        for (std::size_t i = 0; i < values.size(); ++i) // small whole numbers: sums are exact
            values[i] = static_cast<float>((static_cast<int>(i) * 7 + seed) % 11 - 5);
    }

    float at(std::int64_t row, std::int64_t col, bool transposed = false) const
    {
        const std::int64_t r = transposed ? col : row;
        const std::int64_t c = transposed ? row : col;
        return values[static_cast<std::size_t>(r * view.dims[1] + c)];
    }

    std::vector<float> values;
    TensorView view;
};

// Small whole numbers as codes.
struct Codes {
    Codes(DType type, std::int64_t rows, std::int64_t cols, int seed)
        : bytes(static_cast<std::size_t>(rows * cols))
        , view(matrixView(reinterpret_cast<std::byte*>(bytes.data()), type, rows, cols))
    {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = conformance::fp8Code(type, (static_cast<int>(i) * 7 + seed) % 9 - 4);
    }

    float at(std::int64_t row, std::int64_t col) const
    {
        return static_cast<float>(conformance::fp8Value(
            view.dtype, bytes[static_cast<std::size_t>(row * view.dims[1] + col)]));
    }

    std::vector<std::uint8_t> bytes;
    TensorView view;
};

struct Rig {
    Rig()
    {
        test::resetFakeCard();
        test::fakeCublasLt() = {};
        CudaFacts facts;
        facts.computeMajor = 9;
        gemm = makeCublasLtGemm(facts, failure).value();
        (void)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    }

    ~Rig()
    {
        gemm.reset();
        (void)cudaStreamDestroy(stream);
    }

    // Waits for the product.
    Status run(const Product& product)
    {
        MR_TRY(gemm->run(product, stream));
        return failure.check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }

    CudaFailure failure;
    std::unique_ptr<Gemm> gemm;
    cudaStream_t stream = nullptr;
};

} // namespace

class TestGemm : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyTransposeIsTheRowMajorProduct_data()
    {
        QTest::addColumn<bool>("transposeA");
        QTest::addColumn<bool>("transposeB");
        QTest::addColumn<bool>("accumulate");
        QTest::addColumn<bool>("withBias");
        for (int i = 0; i < 16; ++i)
            if ((i & 12) != 12) // a bias is not for accumulating
                QTest::addRow("%d", i) << bool(i & 1) << bool(i & 2) << bool(i & 4) << bool(i & 8);
    }

    void everyTransposeIsTheRowMajorProduct()
    {
        QFETCH(bool, transposeA);
        QFETCH(bool, transposeB);
        QFETCH(bool, accumulate);
        QFETCH(bool, withBias);
        Rig rig;
        const Matrix a(transposeA ? kK : kM, transposeA ? kM : kK, 1);
        const Matrix b(transposeB ? kN : kK, transposeB ? kK : kN, 2);
        const Matrix before(kM, kN, 3);
        Matrix out(kM, kN, 3);
        const Matrix bias(1, kN, 4);
        Product product{a.view, b.view, out.view, {}, transposeA, transposeB, accumulate};
        if (withBias)
            product.bias = vectorView(bias.view.data, DType::F32, kN);

        QVERIFY(rig.run(product).ok());

        for (std::int64_t i = 0; i < kM; ++i) {
            for (std::int64_t j = 0; j < kN; ++j) {
                float want = accumulate ? before.at(i, j) : 0.0F;
                for (std::int64_t l = 0; l < kK; ++l)
                    want += a.at(i, l, transposeA) * b.at(l, j, transposeB);
                QCOMPARE(out.at(i, j), want + (withBias ? bias.at(0, j) : 0.0F));
            }
        }
    }

    // Small whole numbers; the sum with the bias, 257, lies between two BF16.
    void bf16IsRoundedOnceAfterTheBias()
    {
        Rig rig;
        const std::vector<std::uint16_t> ones(16 * 16, 0x3f80);
        const std::vector<std::uint16_t> bias(16, 0x4371); // 241
        std::vector<std::uint16_t> out(16 * 16);
        const auto view = [](const std::vector<std::uint16_t>& values) {
            return matrixView(
                reinterpret_cast<std::byte*>(const_cast<std::uint16_t*>(values.data())),
                DType::BF16, 16, 16);
        };
        Product product{view(ones), view(ones), view(out), {}};
        product.bias = vectorView(
            reinterpret_cast<std::byte*>(const_cast<std::uint16_t*>(bias.data())), DType::BF16, 16);

        QVERIFY(rig.run(product).ok());

        QCOMPARE(out, std::vector<std::uint16_t>(16 * 16, 0x4380)); // 256, even
    }

    void nothingThatAddsAtomicallyOrRoundsPartsIsAllowed()
    {
        Rig rig;
        const Matrix a(kM, kK, 1);
        const Matrix b(kK, kN, 2);
        Matrix out(kM, kN, 3);
        QVERIFY(rig.run({a.view, b.view, out.view, {}}).ok());
        QCOMPARE(test::fakeCublasLt().reductions, 2U); // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
    }

    // Another address, aligned at least to 16 bytes, must not get another algorithm.
    void theAlgorithmDependsOnTheShapeOnly()
    {
        Rig rig;
        std::vector<float> room(1000);
        const auto aligned = [&](std::size_t elements, std::int64_t rows, std::int64_t cols) {
            auto* data = reinterpret_cast<std::byte*>(room.data() + elements);
            return matrixView(data, DType::F32, rows, cols);
        };
        QCOMPARE(reinterpret_cast<std::uintptr_t>(room.data()) % 16, std::uintptr_t{0});
        for (const std::size_t at : {0U, 4U, 64U})
            QVERIFY(rig.run({aligned(at, kM, kK), aligned(200 + at, kK, kN),
                                aligned(400 + at, kM, kN), {}})
                        .ok());
        QCOMPARE(test::fakeCublasLt().proposals, 1);
        QCOMPARE(test::fakeCublasLt().alignment, 16U);

        QVERIFY(rig.run({aligned(1, kM, kK), aligned(200, kK, kN), aligned(400, kM, kN), {}}).ok());
        QCOMPARE(test::fakeCublasLt().proposals, 2);
        QCOMPARE(test::fakeCublasLt().alignment, 4U);
    }

    void aSumOfNothingIsZeroOrTheBiasOrWhatWasThere()
    {
        Rig rig;
        const Matrix a(kM, 0, 1);
        const Matrix b(0, kN, 2);
        Matrix out(kM, kN, 3);
        const Matrix before(kM, kN, 3);
        const Matrix bias(1, kN, 4);
        Product product{a.view, b.view, out.view, {}};
        product.accumulate = true;
        QVERIFY(rig.run(product).ok());
        QCOMPARE(out.values, before.values);
        product.accumulate = false;
        product.bias = vectorView(bias.view.data, DType::F32, kN);
        QVERIFY(rig.run(product).ok());
        QCOMPARE(out.at(kM - 1, 2), bias.at(0, 2));
        product.bias = {};
        QVERIFY(rig.run(product).ok());
        QCOMPARE(out.values, std::vector<float>(static_cast<std::size_t>(kM * kN)));
        QCOMPARE(test::fakeCublasLt().proposals, 0);
    }

    void aNarrowBiasIsAddedToAWideResult()
    {
        Rig rig;
        const Matrix a(kM, kK, 1);
        const Matrix b(kK, kN, 2);
        Matrix plain(kM, kN, 3);
        Matrix out(kM, kN, 3);
        std::vector<std::uint16_t> bias(kN, 0x4040); // 3.0
        Product product{a.view, b.view, plain.view, {}};
        QVERIFY(rig.run(product).ok());
        product.out = out.view;
        product.bias = vectorView(reinterpret_cast<std::byte*>(bias.data()), DType::BF16, kN);
        QVERIFY(rig.run(product).ok());
        QCOMPARE(out.at(1, 1), plain.at(1, 1) + 3.0F);
    }

    void aBiasThatTheLibraryDoesNotAddIsAddedAfterTheProduct()
    {
        Rig rig;
        const Matrix a(kM, kK, 1);
        const Matrix b(kK, kN, 2);
        const Matrix bias(1, kN, 4);
        Matrix fused(kM, kN, 3);
        Matrix out(kM, kN, 3);
        Product product{a.view, b.view, fused.view, vectorView(bias.view.data, DType::F32, kN)};
        QVERIFY(rig.run(product).ok());
        QCOMPARE(test::fakeCublasLt().reductions, 0U); // parts of k would be rounded first

        Rig other;
        test::fakeCublasLt().addsBiases = false;
        product.out = out.view;
        QVERIFY(other.run(product).ok());
        QVERIFY(other.run(product).ok());

        QCOMPARE(out.values, fused.values);
        QCOMPARE(test::fakeCublasLt().proposals, 2);
    }

    void codesAreMultipliedWithTheirScales_data()
    {
        QTest::addColumn<bool>("accumulate");
        QTest::newRow("overwrites") << false;
        QTest::newRow("accumulates") << true;
    }

    void codesAreMultipliedWithTheirScales()
    {
        QFETCH(bool, accumulate);
        Rig rig;
        const Codes a(DType::E5M2, 16, 32, 1);
        const Codes b(DType::E4M3, 48, 32, 2);
        const Matrix before(16, 48, 3);
        Matrix out(16, 48, 3);
        const float scaleA = 0.5F;
        const float scaleB = 8.0F;
        Product product{a.view, b.view, out.view, {}};
        product.transposeB = true;
        product.accumulate = accumulate;
        product.scaleA = &scaleA;
        product.scaleB = &scaleB;

        QVERIFY(rig.run(product).ok());

        for (std::int64_t i = 0; i < 16; ++i) {
            for (std::int64_t j = 0; j < 48; ++j) {
                float want = 0.0F;
                for (std::int64_t l = 0; l < 32; ++l)
                    want += a.at(i, l) * b.at(j, l);
                QCOMPARE(out.at(i, j), 4.0F * want + (accumulate ? before.at(i, j) : 0.0F));
            }
        }
        QVERIFY(test::fakeCublasLt().scaleB == &scaleA);
        Rig other;
        test::fakeCublasLt().hasAlgorithm = false;
        const Status refused = other.run(product);
        QVERIFY(refused.message().find("(16, 32) x (32, 48) in FP8") != std::string::npos);
    }

    void aShapeWithoutAnAlgorithmIsNamed()
    {
        Rig rig;
        test::fakeCublasLt().hasAlgorithm = false;
        const Matrix a(kM, kK, 1);
        const Matrix b(kK, kN, 2);
        Matrix out(kM, kN, 3);
        const Status refused = rig.run({a.view, b.view, out.view, {}});
        QVERIFY(refused.kind() == ErrorKind::InvalidArgument);
        QVERIFY2(refused.message().find("(3, 4) x (4, 5) in F32") != std::string::npos,
            refused.message().c_str());
    }
};

MR_TEST_WITH_APP(TestGemm)

} // namespace mr::test::tst_gemm

#include "tst_gemm.moc"
