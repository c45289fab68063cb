CREATE TABLE IF NOT EXISTS test (
  build_commit TEXT,
  build_number TEXT,
  cuda TEXT,
  metal TEXT,
  gpu_blas TEXT,
  blas TEXT,
  cpu_info TEXT,
  gpu_info TEXT,
  model_filename TEXT,
  model_type TEXT,
  model_size TEXT,
  model_n_params TEXT,
  n_batch TEXT,
  n_threads TEXT,
  f16_kv TEXT,
  n_gpu_layers TEXT,
  main_gpu TEXT,
  mul_mat_q TEXT,
  tensor_split TEXT,
  n_prompt TEXT,
  n_gen TEXT,
  test_time TEXT,
  avg_ns TEXT,
  stddev_ns TEXT,
  avg_ts TEXT,
  stddev_ts TEXT
);

INSERT INTO test (build_commit, build_number, cuda, metal, gpu_blas, blas, cpu_info, gpu_info, model_filename, model_type, model_size, model_n_params, n_batch, n_threads, f16_kv, n_gpu_layers, main_gpu, mul_mat_q, tensor_split, n_prompt, n_gen, test_time, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('abc1234', '8000', '1', '0', '0', '1', '1', 'ACME CPU 16', 'ACME GPU 9000', '/models/deep/tiny-8b-Q4_K_M.gguf', 'llama 8B Q4_K - Medium', '4920000000', '8000000000', '2048', '8', '1', '99', '0', '1', '0.00', '512', '0', '2026-03-02T01:15:14Z', '200000000', '10000000', '2564.27736', '128.374258');
INSERT INTO test (build_commit, build_number, cuda, metal, gpu_blas, blas, cpu_info, gpu_info, model_filename, model_type, model_size, model_n_params, n_batch, n_threads, f16_kv, n_gpu_layers, main_gpu, mul_mat_q, tensor_split, n_prompt, n_gen, test_time, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('abc1234', '8000', '1', '0', '0', '1', '1', 'ACME CPU 16', 'ACME GPU 9000', '/models/deep/tiny-8b-Q4_K_M.gguf', 'llama 8B Q4_K - Medium', '4920000000', '8000000000', '2048', '8', '1', '99', '0', '1', '0.00', '0', '100', '2026-03-02T01:15:14Z', '1000000000', '20000000', '100.026677', '2.000934');
