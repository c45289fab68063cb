CREATE TABLE IF NOT EXISTS llama_bench (
  build_commit TEXT,
  build_number TEXT,
  cpu_info TEXT,
  gpu_info TEXT,
  backends TEXT,
  model_filename TEXT,
  model_type TEXT,
  model_size TEXT,
  model_n_params TEXT,
  n_batch TEXT,
  n_ubatch TEXT,
  n_threads TEXT,
  type_k TEXT,
  type_v TEXT,
  n_gpu_layers TEXT,
  flash_attn TEXT,
  tensor_split TEXT,
  use_mmap TEXT,
  n_prompt TEXT,
  n_gen TEXT,
  n_depth TEXT,
  test_time TEXT,
  avg_ns TEXT,
  stddev_ns TEXT,
  avg_ts TEXT,
  stddev_ts TEXT
);

INSERT INTO llama_bench (build_commit, build_number, cpu_info, gpu_info, backends, model_filename, model_type, model_size, model_n_params, n_batch, n_ubatch, n_threads, type_k, type_v, n_gpu_layers, flash_attn, tensor_split, use_mmap, n_prompt, n_gen, n_depth, test_time, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('abc1234', '8000', 'O''Neill CPU', 'ACME GPU 9000', 'CUDA', '/models/deep/tiny-8b-Q4_K_M.gguf', 'llama 8B Q4_K - Medium', '4920000000', '8000000000', '2048', '512', '8', 'f16', 'f16', '99', '1', '0.00', '1', '512', '0', '0', '2026-03-02T01:15:14Z', '200000000', '10000000', '2564.27736', '128.374258');
INSERT INTO llama_bench (build_commit, build_number, cpu_info, gpu_info, backends, model_filename, model_type, model_size, model_n_params, n_batch, n_ubatch, n_threads, type_k, type_v, n_gpu_layers, flash_attn, tensor_split, use_mmap, n_prompt, n_gen, n_depth, test_time, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('abc1234', '8000', 'O''Neill CPU', 'ACME GPU 9000', 'CUDA', '/models/deep/tiny-8b-Q4_K_M.gguf', 'llama 8B Q4_K - Medium', '4920000000', '8000000000', '2048', '512', '8', 'f16', 'f16', '99', '1', '0.00', '1', '0', '100', '0', '2026-03-02T01:15:14Z', '1000000000', '20000000', '100.026677', '2.000934');
