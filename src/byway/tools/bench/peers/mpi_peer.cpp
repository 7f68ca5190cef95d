// SPDX-License-Identifier: BSD-3-Clause
// One rank of an MPI library under comparison. Compiled by the bench against that library's mpi.h.
#include <mpi.h>

#include <cstdio>

#include "peer_loop.h"

namespace {

using byway_peers::Cell;

MPI_Datatype typeOf(const std::string& dtype) {
  if (dtype == "float32") return MPI_FLOAT;
  if (dtype == "float64") return MPI_DOUBLE;
  if (dtype == "int32") return MPI_INT32_T;
  if (dtype == "int64") return MPI_INT64_T;
  if (dtype == "int8") return MPI_INT8_T;
  if (dtype == "uint8") return MPI_UINT8_T;
  throw std::runtime_error("MPI has no type for " + dtype);
}

class Mpi : public byway_peers::Library {
 public:
  Mpi(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Mpi() override { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void prepare(const Cell& cell) override {
    type_ = typeOf(cell.dtype);
    if (cell.count > INT32_MAX) throw std::runtime_error("counts beyond 2^31");
  }
  void call(const Cell& cell, void* in, void* out) override {
    const std::string& what = cell.collective;
    const int n = static_cast<int>(cell.count);
    const MPI_Comm world = MPI_COMM_WORLD;
    if (what == "allreduce") {
      MPI_Allreduce(MPI_IN_PLACE, out, n, type_, MPI_SUM, world);
    } else if (what == "broadcast") {
      MPI_Bcast(out, n, type_, 0, world);
    } else if (what == "reduce") {
      MPI_Reduce(rank_ == 0 ? MPI_IN_PLACE : in, out, n, type_, MPI_SUM, 0, world);
    } else if (what == "all-gather") {
      MPI_Allgather(in, n, type_, out, n, type_, world);
    } else if (what == "reduce-scatter") {
      MPI_Reduce_scatter_block(in, out, n, type_, MPI_SUM, world);
    } else if (what == "all-to-all") {
      MPI_Alltoall(in, n, type_, out, n, type_, world);
    } else if (what == "scatter") {
      MPI_Scatter(in, n, type_, out, n, type_, 0, world);
    } else if (what == "gather") {
      MPI_Gather(in, n, type_, out, n, type_, 0, world);
    } else {
      throw std::runtime_error("no " + what);
    }
  }

 private:
  int rank_ = 0, size_ = 0;
  MPI_Datatype type_ = MPI_FLOAT;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Mpi library(&argc, &argv);
    byway_peers::serve(library);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
