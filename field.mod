!mod$ v1 sum:58b3ec72b23bb131
module field
real(8),allocatable::u(:,:)
real(8),allocatable::w(:,:)
real(8),allocatable::strided(:,:)
real(8)::fixed(1_8:64_8,1_8:64_8)
end
