/* All-to-all and all-reduce of 64 MiB, every element checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t kOctets = 64u << 20;

/* Number of wrong elements. */
static long all_to_all(int rank, int ranks) {
  size_t each = kOctets / sizeof(int) / (size_t)ranks;
  int *sent = malloc(kOctets), *received = malloc(kOctets);
  long wrong = 0;
  for (int to = 0; to < ranks; ++to) {
    for (size_t i = 0; i < each; ++i)
      sent[(size_t)to * each + i] = rank * 1000003 + to * 7919 + (int)i;
  }
  MPI_Alltoall(sent, (int)each, MPI_INT, received, (int)each, MPI_INT, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) {
    for (size_t i = 0; i < each; ++i)
      wrong += received[(size_t)from * each + i] != from * 1000003 + rank * 7919 + (int)i;
  }
  free(sent);
  free(received);
  return wrong;
}

static long all_reduce(int rank, int ranks) {
  size_t count = kOctets / sizeof(long);
  long *own = malloc(kOctets), *sum = malloc(kOctets), wrong = 0;
  for (size_t i = 0; i < count; ++i) own[i] = rank + (long)i;
  MPI_Allreduce(own, sum, (int)count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i)
    wrong += sum[i] != ranks * (long)i + (long)ranks * (ranks - 1) / 2;
  free(own);
  free(sum);
  return wrong;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long wrong = all_to_all(rank, ranks) + all_reduce(rank, ranks), all;
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %ld wrong\n", ranks, all);
  MPI_Finalize();
  return all != 0;
}
